"""Offsets never go back, never skip, and never count scaling as loss."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.errors import CheckpointMismatch
from ringcast.spark.tags.offsets import MOST_GONE, Head, Key, Offset, Piece, advance, pieces, split

A, B, C = (Key("t", f"n/p|x/{name}", f"{name:0>16}") for name in "abc")


def offset(**streams: int) -> Offset:
    return Offset("t", {{"a": A, "b": B, "c": C}[name]: seq for name, seq in streams.items()})


def test_text_and_back() -> None:
    start = Offset("t", {A: 5, B: 7}, frozenset({B}))
    assert Offset.decode(start.encode(), "t") == start
    assert Key.parse(A.text()) == A


def test_checkpoint_of_another_query() -> None:
    with pytest.raises(CheckpointMismatch, match=r"'t'.*'u'") as caught:
        Offset.decode(offset(a=1).encode(), "u")
    assert (caught.value.expected, caught.value.found) == ("u", "t")
    with pytest.raises(CheckpointMismatch, match="another source"):
        Offset.decode({"index": 4}, "t")


def test_nothing_new_is_the_same_offset() -> None:
    start = offset(a=5, b=7)
    assert advance(start, [Head(A, 0, 5), Head(B, 3, 7)]) is start
    assert advance(start, []) is start


def test_a_new_stream_is_read_from_its_first_message_and_not_strictly() -> None:
    start = offset(a=5)
    end = advance(start, [Head(A, 0, 6), Head(B, 10, 12)])
    assert end.streams == {A: 6, B: 12}
    assert pieces(start, end) == [Piece(A, 5, 6, True), Piece(B, 0, 12, False)]


def test_a_loose_beginning_stays_loose_until_something_was_taken() -> None:
    start = Offset("t", {A: 0, B: 5}, frozenset({A, B}))
    end = advance(start, [Head(A, 100, 200), Head(B, 5, 5)])
    assert end.loose == {B}
    assert [piece.strict for piece in pieces(start, end)] == [False]
    assert [piece.strict for piece in pieces(end, advance(end, [Head(A, 150, 210)]))] == [True]


def test_streams_that_are_gone_are_remembered_but_not_all_of_them() -> None:
    keys = [Key("t", "p", f"{n:016x}") for n in range(MOST_GONE + 10)]
    start = Offset("t", dict.fromkeys(keys, 3))
    end = advance(start, [Head(A, 0, 1)])
    assert len(end.streams) == MOST_GONE + 1
    assert keys[0] not in end.streams
    assert keys[-1] in end.streams


@settings(suppress_health_check=[HealthCheck.too_slow])  # a machine that does other things
@given(
    begins=st.lists(st.integers(0, 50), min_size=3, max_size=3),
    held=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=3),
    most=st.one_of(st.none(), st.integers(1, 40)),
)
def test_steps_cover_everything_once(begins: list[int], held: list[tuple[int, int]], most: int | None) -> None:
    at = Offset("t", dict(zip((A, B, C), begins, strict=True)))
    heads = [Head(k, min(h), max(*h, b)) for k, h, b in zip((A, B, C), held, begins, strict=True)]
    read: dict[Key, list[int]] = {A: [], B: [], C: []}
    for _ in range(400):
        end = advance(at, heads, most)
        if end is at:
            break
        taken = 0
        for piece in pieces(at, end):
            for part in split(piece, 7):
                oldest = next(head.oldest for head in heads if head.key == piece.key)
                numbers = [n for n in range(part.first, part.end) if n >= oldest]
                taken += len(numbers)
                read[piece.key] += numbers
        assert most is None or taken <= most
        at = end
    else:
        pytest.fail("it does not end")
    for head, begin in zip(heads, begins, strict=True):
        assert read[head.key] == list(range(max(begin, head.oldest), head.next))


def test_a_slow_stream_does_not_wait_for_a_fast_one() -> None:
    end = advance(offset(a=0, b=0, c=0), [Head(A, 0, 10_000), Head(B, 0, 10), Head(C, 0, 10_000)], 110)
    assert end.streams == {A: 50, B: 10, C: 50}
