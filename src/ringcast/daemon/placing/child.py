"""The process that solves a placement for its daemon: a question on standard input, an answer on standard output."""

from __future__ import annotations

import sys

import msgspec

from ringcast.daemon.placing.solving import Question, solved


def main() -> None:
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.msgpack.encode(solved(question)))


if __name__ == "__main__":
    main()
