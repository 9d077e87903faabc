"""Offsets: which number of each stream comes next, as Spark keeps it in a checkpoint. Pure.

A stream is (tag, publisher, incarnation). An offset names every stream that was seen; one that is not named has not
been seen, and is read from its first message. Where the beginning was not chosen by number but is whatever happens to
be held (`loose`), what is overwritten before it is not loss.

Invariant: an offset never goes back, and what is between two offsets is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ringcast.errors import CheckpointMismatch

MOST_GONE = 1000
"""How many streams that are gone an offset goes on naming. They may come back, as those of a node that was away do."""


class Key(NamedTuple):
    tag: str
    publisher: str
    incarnation: str

    def text(self) -> str:
        return "|".join(self)

    @staticmethod
    def parse(text: str) -> Key:
        tag, _, rest = text.partition("|")
        publisher, _, incarnation = rest.rpartition("|")
        return Key(tag, publisher, incarnation)


class Head(NamedTuple):
    """What is held of a stream: `oldest` to `next` - 1."""

    key: Key
    oldest: int
    next: int


class Piece(NamedTuple):
    """Numbers of one stream to be read: `first` to `end` - 1. Unless `strict`, what is gone of them is only counted."""

    key: Key
    first: int
    end: int
    strict: bool


class Offset(NamedTuple):
    reads: str
    streams: dict[Key, int]
    loose: frozenset[Key] = frozenset()

    def encode(self) -> dict[str, Any]:
        return {
            "reads": self.reads,
            "streams": {key.text(): seq for key, seq in self.streams.items()},
            "loose": {key.text(): True for key in sorted(self.loose)},
        }

    @staticmethod
    def decode(found: Mapping[str, Any], reads: str) -> Offset:
        """Raises CheckpointMismatch when the checkpoint is another query's, or another source's."""
        if not isinstance(found.get("streams"), dict) or "reads" not in found:
            raise CheckpointMismatch(reads, "another source")
        if found["reads"] != reads:
            raise CheckpointMismatch(reads, str(found["reads"]))
        streams = {Key.parse(text): int(seq) for text, seq in found["streams"].items()}
        return Offset(reads, streams, frozenset(Key.parse(text) for text in found.get("loose", {})))


def advance(start: Offset, heads: Iterable[Head], most: int | None = None, every: int = 1) -> Offset:
    """The offset after `start` up to what is held, or up to `most` messages. `start` itself when there is nothing."""
    held = {head.key: head for head in heads}
    waiting = {}
    for key, head in held.items():
        first = max(start.streams.get(key, 0), head.oldest)
        waiting[key] = max(0, head.next - first)
    share = _shares(waiting, None if most is None else most * every)
    gone = [key for key in start.streams if key not in held]
    streams = {key: start.streams[key] for key in gone[max(0, len(gone) - MOST_GONE) :]}
    for key in sorted(held):
        begin = start.streams.get(key, 0)
        taken = share[key]
        # Stopping short of the oldest held would be a step into what is gone, told again and again.
        streams[key] = max(begin, held[key].oldest + taken if begin < held[key].oldest else begin + taken)
        if not taken:
            streams[key] = begin
    if streams == start.streams:
        return start
    # One of which nothing was taken yet begins where it would have begun.
    unread = {key for key in held if not share[key] and (key in start.loose or key not in start.streams)}
    return Offset(start.reads, streams, frozenset(unread | {key for key in gone if key in start.loose}))


def pieces(start: Offset, end: Offset) -> list[Piece]:
    """What lies between two offsets."""
    found = []
    for key, stop in end.streams.items():
        first = start.streams.get(key, 0)
        if stop > first:
            found.append(Piece(key, first, stop, key in start.streams and key not in start.loose))
    return found


def split(piece: Piece, most: int) -> list[Piece]:
    """The same numbers in pieces of at most `most`."""
    return [
        piece._replace(first=first, end=min(first + most, piece.end)) for first in range(piece.first, piece.end, most)
    ]


def _shares(waiting: Mapping[Key, int], most: int | None) -> dict[Key, int]:
    """Fair: nobody waits for a faster neighbour. The small are served whole, and the rest share what is left."""
    if most is None or sum(waiting.values()) <= most:
        return dict(waiting)
    shares = {}
    left = most
    ordered = sorted(waiting, key=lambda key: (waiting[key], key))
    for number, key in enumerate(ordered):
        shares[key] = min(waiting[key], left // (len(ordered) - number))
        left -= shares[key]
    return shares
