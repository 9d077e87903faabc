"""A process that scales single messages for a daemon's pulls: `python -m ringcast.scaling.pull_worker FD`.

Like a stage's process it is there so that a scaler may crash without the daemon. FD is a stream socket; each question
and each answer is a length of four bytes (big-endian) and that many of MessagePack. Ends with its socket.
"""

from __future__ import annotations

import socket
import sys

import msgspec

from ringcast.errors import RingcastError
from ringcast.model.tag import TagAttributes
from ringcast.scaling.interface import Size
from ringcast.scaling.registry import scaler_for

LENGTH_BYTES = 4


class ToScale(msgspec.Struct, frozen=True):
    attributes: TagAttributes
    size: Size
    payloads: list[bytes]


class Scaled(msgspec.Struct, frozen=True):
    """`error` says why not."""

    payloads: list[bytes] = []
    error: str = ""


def answer(question: ToScale) -> Scaled:
    try:
        scaler = scaler_for(question.attributes.codec, question.size)
        return Scaled([scaler.scale(one, question.attributes, question.size) for one in question.payloads])
    except RingcastError as exc:
        return Scaled(error=str(exc))
    except Exception as exc:  # a plug-in may raise anything
        return Scaled(error=f"{type(exc).__name__}: {exc}")


def main(fd: int) -> int:
    with socket.socket(fileno=fd) as sock, sock.makefile("rb") as questions:
        while True:
            length = questions.read(LENGTH_BYTES)
            body = questions.read(int.from_bytes(length))
            if not body:
                return 0
            packet = msgspec.msgpack.encode(answer(msgspec.msgpack.decode(body, type=ToScale)))
            sock.sendall(len(packet).to_bytes(LENGTH_BYTES) + packet)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
