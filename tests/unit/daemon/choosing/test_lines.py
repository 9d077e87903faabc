"""How fast a node's lines are: the smallest of card, queue and what an administrator wrote; asked again in time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ringcast.daemon.choosing import lines as module
from ringcast.daemon.choosing.lines import CHANGING_S, FRESH_S, HURRIED_FRESH_S, WAY_S, Lines, Speeds
from ringcast.errors import BrokenError


class World:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s, self.most = 100.0, 0.0
        self.card, self.queue, self.sent = 1_000.0, 0.0, 0
        self.asked: list[str] = []
        self.looked_up: list[str] = []
        self.threads: set[int] = set()
        self.lost = False
        patch.setattr(module, "_towards", lambda host: f"to-{host}")
        patch.setattr(module, "_asked", self._ask)
        self.lines = Lines(self._host_of, lambda: self.most, lambda: self.now_s)

    async def _host_of(self, node: str) -> str:
        self.looked_up.append(node)
        if self.lost:
            raise BrokenError("it is not where it says")
        return "10.0.0.2"

    def _ask(self, name: str) -> tuple[float, float, int]:
        self.asked.append(name)
        self.threads.add(threading.get_ident())
        return self.card, self.queue, self.sent

    def look(self, after_s: float = 0.0) -> Speeds:
        self.now_s += after_s
        return asyncio.run(self.lines.to("b"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.mark.parametrize(
    ("card", "queue", "most", "out", "into"),
    [
        (1_000.0, 0.0, 0.0, 1_000.0, 1_000.0), (1_000.0, 250.0, 0.0, 250.0, 1_000.0),
        (1_000.0, 250.0, 100.0, 100.0, 100.0), (1_000.0, 5_000.0, 0.0, 1_000.0, 1_000.0),
        (0.0, 250.0, 0.0, 250.0, 0.0), (0.0, 0.0, 100.0, 100.0, 100.0), (0.0, 0.0, 0.0, 0.0, 0.0),
    ],
)  # fmt: skip
def test_the_smallest_of_what_is_known_counts_and_a_queue_holds_up_only_what_leaves(
    world: World, card: float, queue: float, most: float, out: float, into: float
) -> None:
    world.card, world.queue, world.most = card, queue, most
    assert world.look() == Speeds(out, into, 0.0)


def test_a_rate_is_asked_for_again_after_a_few_seconds_and_not_by_the_loops_thread(world: World) -> None:
    assert world.look().out == 1_000.0
    world.queue = 250.0
    assert world.look(FRESH_S / 2).out == 1_000.0
    assert world.asked == ["to-10.0.0.2"]
    assert world.look(FRESH_S / 2).out == 250.0
    world.queue = 0.0
    assert world.look(FRESH_S).out == 1_000.0
    assert world.looked_up == ["b"], "by which interface it is reached is believed longer"
    world.look(WAY_S)
    assert world.looked_up == ["b", "b"]
    assert threading.get_ident() not in world.threads


def test_what_leaves_is_counted_between_two_looks(world: World) -> None:
    assert world.look().leaves == 0.0
    world.sent = 600
    assert world.look(FRESH_S).leaves == pytest.approx(600 / FRESH_S)
    assert world.look(FRESH_S / 2).leaves == pytest.approx(600 / FRESH_S), "as of the last look"
    world.sent = 100
    assert world.look(FRESH_S).leaves == 0.0, "the interface is another one"


def test_a_node_that_is_not_where_it_says_is_looked_for_now_and_then(world: World) -> None:
    world.lost = True
    assert world.look() == world.look(1.0) == Speeds()
    assert world.looked_up == ["b"]
    world.lost = False
    assert world.look(WAY_S).out == 1_000.0


def test_what_was_not_asked_for_lately_is_forgotten(world: World) -> None:
    world.look()
    asyncio.run(world.lines.of("other"))
    world.look(module.FORGOTTEN_S)
    assert set(world.lines._looks) == {"to-10.0.0.2"}


def test_after_a_change_of_queues_a_rate_is_asked_for_at_once(world: World) -> None:
    assert world.look().out == 1_000.0
    world.queue = 250.0
    world.lines.changed()
    assert world.look(0.01).out == 250.0
    assert world.look(0.01).out == 250.0
    assert len(world.asked) == 2


def test_a_change_while_a_rate_is_asked_for_is_not_overlooked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(name: str) -> tuple[float, float, int]:
        world.now_s += 0.01
        world.lines.changed()
        return 1_000.0, 0.0, 0

    monkeypatch.setattr(module, "_asked", asked)
    assert world.look().out == 1_000.0
    monkeypatch.setattr(module, "_asked", world._ask)
    world.queue = 250.0
    assert world.look(0.01).out == 250.0


def test_while_a_line_has_just_changed_what_leaves_it_is_looked_at_again_and_again(world: World) -> None:
    world.look()
    world.lines.changed()
    assert world.look(0.01).leaves == 0.0
    world.sent = 500
    assert world.look(HURRIED_FRESH_S).leaves == pytest.approx(500 / HURRIED_FRESH_S)
    world.look(CHANGING_S)
    asked = len(world.asked)
    world.look(HURRIED_FRESH_S)
    assert len(world.asked) == asked, "and then as seldom as before"
