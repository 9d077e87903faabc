"""One process of the search and rescue: `python -m ringcast.demo.rescue.actor NAME SOCKET DIR`.

It says `ready`, waits for the instant to begin as a line on standard input, and ends when that does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import ringcast
from ringcast.demo.rescue.roles import CHANNELS, PROXY, ROLES, SENSORS, SETTINGS, WEAK_HZ, WEAK_SIZE, WEAK_TAG, Role
from ringcast.demo.small.ending import Ending

_TELL_S = 0.5
_POLL_S = 0.1


class Sight(msgspec.Struct, frozen=True):
    """What a handheld has received so far."""

    received: int = 0
    lost: int = 0
    bytes: int = 0
    shape: tuple[int, ...] = ()
    delay_ms: float = 0.0


def main(argv: Sequence[str]) -> int:
    name, socket_path, directory = argv
    role = ROLES[name]
    try:
        with ringcast.connect(socket_path, start=False, program=f"demo {name}") as session:
            if role.kind == "recorder":
                _record(session, Path(directory))
            elif role.kind == "handheld":
                _look(session)
            else:
                _sense(session, role)
    except ringcast.RingcastError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def _ready() -> int:
    """Returns the instant to begin at; 0 when it was over before it began."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    line = b""
    # Byte by byte, and not by sys.stdin: what follows is for the ending, which reads the descriptor.
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return 0
        line += byte
    return int(line)


def _sense(session: ringcast.Session, role: Role) -> None:
    from ringcast.rescue import Mission
    from ringcast.rescue.live import publish

    mission = Mission(SETTINGS)
    next(mission.messages(role.plays))  # what is imported late is imported now
    if begin_ns := _ready():
        stop = threading.Event()
        Ending().then(stop.set)
        publish(mission, session, role.plays, stop, begin_ns=begin_ns)


def _record(session: ringcast.Session, directory: Path) -> None:
    from ringcast.record.recorder import Recorder
    from ringcast.record.writer import RecordingWriter

    with RecordingWriter(directory) as writer:
        recorder = Recorder(session, [*SENSORS, CHANNELS], writer, start="earliest")
        if _ready():
            Ending().then(recorder.stop)
            recorder.run()


def _look(session: ringcast.Session) -> None:
    if not _ready():
        return
    over = threading.Event()
    Ending().then(over.set)
    seen, told = Sight(), 0.0
    # Whoever comes first makes a tag, and this one is the publisher's to make.
    while not session.tags(WEAK_TAG):
        if over.wait(_POLL_S):
            return
    with session.subscribe(WEAK_TAG, size=WEAK_SIZE, rate_hz=WEAK_HZ, at=PROXY) as subscriber:
        while not over.is_set():
            try:
                message: ringcast.Message[Any] = subscriber.recv(timeout=_TELL_S)
            except TimeoutError:
                continue
            seen = Sight(
                seen.received + 1, seen.lost + message.lost, seen.bytes + message.data.nbytes, message.data.shape,
                (message.received_ns - message.sent_ns) / 1e6,
            )  # fmt: skip
            if time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                sys.stdout.write(msgspec.json.encode(seen).decode() + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
