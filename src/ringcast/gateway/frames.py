"""The binary frames between a page and the gateway: messages, and how far each side has come with them. Pure.

All numbers little-endian. To the page:

    byte  0     1      2     4             8        16          24         32             40      44        48
         +-----+------+-----+-------------+--------+-----------+----------+--------------+-------+---------+---------
         | 1|2 | flag |  0  | stream      | seq    | event_ns  | sent_ns  | received_ns  | lost  | source  | payload
         +-----+------+-----+-------------+--------+-----------+----------+--------------+-------+---------+---------
          kind  u8     u16   u32           u64      i64         i64        i64            u32     u32

    kind 1 is a message of the subscription `stream`, kind 2 one that the request `stream` pulled; `source` is a
    publisher that an earlier JSON message announced. Flag 1: discardable.

         +-----+------+-----+-------------+--------+--------+
         |  4  |  0   |  0  | publisher   | number | seq    |      the message `number` of a page's publisher was sent
         +-----+------+-----+-------------+--------+--------+
          u8    u8     u16   u32           u32+u32  u64

From the page:

         +-----+------+-----+-------------+--------+--------+-----------+---------
         |  3  | flag |  0  | publisher   | number |   0    | event_ns  | payload   publish; flag 1: discardable,
         +-----+------+-----+-------------+--------+--------+-----------+---------  flag 2: event_ns counts
          u8    u8     u16   u32           u32      u32      i64

         +-----+------+-----+-------------+--------+
         |  5  |  0   |  0  | stream      | number |      the application has taken so many messages of `stream`
         +-----+------+-----+-------------+--------+
          u8    u8     u16   u32           u32

`number` counts from 1 and wraps at 2**32; it belongs to the connection's two ends, `seq` to the publisher's ring.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ringcast.errors import BadMessage

MESSAGE, PULLED, PUBLISH, SENT, TAKEN = 1, 2, 3, 4, 5
DISCARDABLE, TIMED = 1, 2
WRAP = 2**32
MESSAGE_HEADER = struct.Struct("<BBHIQqqqII")
_PUBLISH_HEADER = struct.Struct("<BBHIIIq")
_SENT = struct.Struct("<BBHIIIQ")
_TAKEN = struct.Struct("<BBHII")


class Published(NamedTuple):
    """A message from a page."""

    publisher: int
    number: int
    event_ns: int | None
    discardable: bool
    payload: memoryview


class Taken(NamedTuple):
    """How many messages of a stream the page's application has taken, modulo 2**32."""

    stream: int
    number: int


def parse_untrusted(frame: bytes) -> Published | Taken:
    """What a page sent. Raises BadMessage, and nothing else, for whatever bytes."""
    kind = frame[0] if frame else 0
    if kind == PUBLISH:
        if len(frame) < _PUBLISH_HEADER.size:
            raise BadMessage(f"a publish frame has a header of {_PUBLISH_HEADER.size} bytes, this one {len(frame)}")
        _, flags, zero, publisher, number, zeros, event_ns = _PUBLISH_HEADER.unpack_from(frame)
        if zero or zeros or flags & ~(DISCARDABLE | TIMED):
            raise BadMessage("a publish frame has unknown flags, or something where zeros belong")
        return Published(
            publisher, number, event_ns if flags & TIMED else None, bool(flags & DISCARDABLE),
            memoryview(frame)[_PUBLISH_HEADER.size :],
        )  # fmt: skip
    if kind == TAKEN:
        if len(frame) != _TAKEN.size:
            raise BadMessage(f"a taken frame has {_TAKEN.size} bytes, this one {len(frame)}")
        _, flags, zero, stream, number = _TAKEN.unpack(frame)
        if zero or flags:
            raise BadMessage("a taken frame has something where zeros belong")
        return Taken(stream, number)
    raise BadMessage(f"a page sends frames of kind {PUBLISH} (publish) and {TAKEN} (taken), not {kind}")


def sent(publisher: int, number: int, seq: int) -> bytes:
    return _SENT.pack(SENT, 0, 0, publisher, number, 0, seq)
