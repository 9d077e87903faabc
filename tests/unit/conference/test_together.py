"""Board, chat and game: what everybody sees does not depend on who heard what first."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest
from conference_model import drawing, writing
from conference_model.drawing import Board, Drawn, Undone
from conference_model.playing import DOWN_MS, EXTENT, Game, Table, target
from conference_model.writing import BadValue, Chat, Line

from ringcast.conference import presence
from ringcast.conference.presence import Fire, Gone, Here, Roll, Start, State


def stroke(author: int, n: int, at: int) -> Drawn:
    return Drawn(id=author, n=n, at=at, shape="stroke", points=[(0, 0), (at, at)])


def test_a_board_is_the_same_in_whichever_order_it_is_heard() -> None:
    actions: list[drawing.Action] = [stroke(1, 0, 10), stroke(2, 0, 5), stroke(1, 1, 20)]
    actions += [Undone(id=1, n=2, at=30, of=1), Undone(id=2, n=1, at=31, of=1)]
    boards = []
    for seed in range(6):
        random.Random(seed).shuffle(actions)
        board = Board()
        for action in [*actions, *actions]:
            board.take(action)
        boards.append(board.things())
    assert boards[0] == [stroke(2, 0, 5), stroke(1, 0, 10)]
    assert all(things == boards[0] for things in boards)


def test_only_ones_own_can_be_undone() -> None:
    board = Board()
    for action in (stroke(1, 0, 1), stroke(2, 0, 2), Undone(id=2, n=1, at=3, of=0)):
        board.take(action)
    assert board.things() == [stroke(1, 0, 1)]
    assert board.undoable(1) == 0
    assert board.undoable(2) is None


def test_chat_keeps_each_line_once_in_the_order_of_writing() -> None:
    chat = Chat()
    lines = [Line(id=1, n=n, at=100 - n, name="Ada", text=str(n)) for n in range(3)]
    assert [chat.take(line) for line in [*lines, lines[0]]] == [True, True, True, False]
    assert [line.text for line in chat.lines()] == ["2", "1", "0"]


@pytest.mark.parametrize("read", [drawing.read_untrusted, writing.read_untrusted, presence.read_untrusted])
@pytest.mark.parametrize("bad", [b"", b"{}", b"[1]", b'{"do": "drawn"}', b"\xff", b'{"do": "here", "id": -1}'])
def test_what_does_not_belong_is_refused_with_a_word(read: object, bad: bytes) -> None:
    with pytest.raises(BadValue):
        read(bad)  # type: ignore[operator]


def test_a_text_of_a_megabyte_is_refused() -> None:
    line = {"id": 1, "n": 0, "at": 0, "name": "Ada", "text": "x" * 1_000_000}
    with pytest.raises(BadValue, match="2000"):
        writing.read_untrusted(msgspec.json.encode(line))


START = Start(id=1, game=7, seed=42, at=1000, seconds=30, shots=3)


def test_the_target_moves_the_same_for_all_and_stays_on_the_field() -> None:
    way = [target(42, 0, ms) for ms in range(0, 30_000, 50)]
    assert way == [target(42, 0, ms) for ms in range(0, 30_000, 50)]
    assert all(0 <= spot.x <= EXTENT and 0 <= spot.y <= EXTENT for spot in way)
    assert len(set(way)) > 500
    assert max(abs(a.x - b.x) for a, b in itertools.pairwise(way)) <= EXTENT // 20


def test_of_two_who_fire_at_the_same_moment_one_hits() -> None:
    game = Game(START)
    game.aim(*target(42, 0, 500))
    assert game.fire(Fire(id=2, game=7, n=0), 500)
    game.aim(*target(42, 1, 500))
    assert not game.fire(Fire(id=3, game=7, n=0), 500)
    assert (game.score, game.shots) == (1, 1)
    game.aim(*target(42, 1, 500 + DOWN_MS))
    assert game.fire(Fire(id=3, game=7, n=1), 500 + DOWN_MS)


def test_shots_are_finite_and_time_is_fixed() -> None:
    game = Game(START)
    for n in range(5):
        game.fire(Fire(id=2, game=7, n=n), 100)
    assert game.shots == 0
    assert game.over(100)
    assert Game(START).over(30_000)
    assert not Game(START).fire(Fire(id=2, game=7, n=0), 30_000)


def test_the_owner_cannot_fire_nor_anybody_twice_with_one_shot() -> None:
    game = Game(START)
    game.fire(Fire(id=1, game=7, n=0), 0)
    game.fire(Fire(id=2, game=9, n=0), 0)
    assert game.shots == 3
    game.fire(Fire(id=2, game=7, n=0), 0)
    game.fire(Fire(id=2, game=7, n=0), 0)
    assert game.shots == 2


def test_a_second_game_is_refused_while_one_runs() -> None:
    table = Table()
    assert table.started(START, 0)
    assert not table.started(msgspec.structs.replace(START, id=2, game=8, at=1001), 10)
    assert table.told(Game(START).state(100), 100)
    assert not table.told(msgspec.structs.replace(Game(START).state(100), id=2), 100)
    over = State(id=1, game=7, elapsed=30_000, x=0, y=0, score=2, shots=0, over=True)
    assert table.told(over, 200)
    assert not table.running(200)
    assert table.started(msgspec.structs.replace(START, id=2, game=8), 300)


def test_of_two_games_that_crossed_the_earlier_counts_for_everybody() -> None:
    other = msgspec.structs.replace(START, id=2, game=8, at=999)
    for order in ([START, other], [other, START]):
        table = Table()
        for start in order:
            table.started(start, 0)
        assert table.start == other


def test_a_game_whose_owner_left_is_over() -> None:
    table = Table()
    table.started(START, 0)
    assert table.running(2_999)
    assert not table.running(3_000)


def test_the_roll_forgets_who_says_nothing() -> None:
    roll = Roll()
    ada = Here(id=1, name="Ada", publishes=["audio"], subscribes=[])
    roll.take(ada, 0)
    roll.take(msgspec.structs.replace(ada, id=2, name="Bob"), 3_000)
    assert [here.name for here in roll.here(5_000)] == ["Ada", "Bob"]
    assert [here.name for here in roll.here(6_000)] == ["Bob"]
    roll.take(Gone(id=2), 6_000)
    assert roll.here(6_000) == []
