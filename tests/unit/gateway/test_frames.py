"""Binary frames: what the page writes is read as it was meant, and anything else is refused by one error."""

from __future__ import annotations

import struct

import pytest

from ringcast.errors import BadMessage
from ringcast.gateway import frames


def publish(flags: int = 0, zero: int = 0, zeros: int = 0, payload: bytes = b"data") -> bytes:
    return struct.pack("<BBHIIIq", 3, flags, zero, 7, 9, zeros, -5) + payload


def test_a_publish_frame() -> None:
    found = frames.parse_untrusted(publish())
    assert isinstance(found, frames.Published)
    assert found[:4] == (7, 9, None, False)
    assert bytes(found.payload) == b"data"


@pytest.mark.parametrize(("flags", "event_ns", "discardable"), [(1, None, True), (2, -5, False), (3, -5, True)])
def test_flags(flags: int, event_ns: int | None, discardable: bool) -> None:
    found = frames.parse_untrusted(publish(flags))
    assert isinstance(found, frames.Published)
    assert (found.event_ns, found.discardable) == (event_ns, discardable)


def test_a_taken_frame() -> None:
    assert frames.parse_untrusted(struct.pack("<BBHII", 5, 0, 0, 3, 2**32 - 1)) == frames.Taken(3, 2**32 - 1)


@pytest.mark.parametrize(
    "frame",
    [
        b"", b"\x03", publish()[:23], publish(flags=4), publish(zero=1), publish(zeros=1), b"\x05" * 11, b"\x05" * 12,
        struct.pack("<BBHII", 5, 0, 0, 3, 1) + b"x", b"\x01" * 60, b"\xff" * 60,
    ],
)  # fmt: skip
def test_others_are_refused(frame: bytes) -> None:
    with pytest.raises(BadMessage):
        frames.parse_untrusted(frame)


def test_headers_are_as_long_as_the_module_in_the_page_expects() -> None:
    assert frames.MESSAGE_HEADER.size == 48
    assert frames.sent(1, 2, 3) == struct.pack("<BBHIIIQ", 4, 0, 0, 1, 2, 0, 3)
