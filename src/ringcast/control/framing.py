"""Packets to messages and back. What came off a socket is untrusted; decoding it raises BadMessage and nothing else.

Knows no socket: `ringcast.control.link` sends and receives the packets.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from ringcast.codec.prepared import made
from ringcast.control.answers import Answer
from ringcast.control.notices import Notice
from ringcast.control.requests import Request
from ringcast.errors import BadMessage

_T = TypeVar("_T")

MAX_PACKET_BYTES = 64 * 1024
MAX_DESCRIPTORS = 4

_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Raises BadMessage when the message does not fit one packet: listings are cut into pages before."""
    packet = _encoder.encode(message)
    if len(packet) > MAX_PACKET_BYTES:
        raise BadMessage(f"{len(packet)} bytes, more than the {MAX_PACKET_BYTES} of one packet")
    return packet


def decode_request_untrusted(packet: bytes) -> Request:
    return _decode(_requests(), packet)


def decode_reply_untrusted(packet: bytes) -> Answer | Notice:
    return _decode(_replies(), packet)


# A daemon needs the one and a client the other, and each takes milliseconds to make.
@cache
def _requests() -> msgspec.msgpack.Decoder[Request]:
    return made(Request)  # type: ignore[no-any-return]


@cache
def _replies() -> msgspec.msgpack.Decoder[Answer | Notice]:
    return made(Answer | Notice)  # type: ignore[no-any-return]


def _decode(decoder: msgspec.msgpack.Decoder[_T], packet: bytes) -> _T:
    if len(packet) > MAX_PACKET_BYTES:
        raise BadMessage(f"{len(packet)} bytes, more than the {MAX_PACKET_BYTES} of one packet")
    try:
        return decoder.decode(packet)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError) as exc:
        raise BadMessage(str(exc)) from exc
