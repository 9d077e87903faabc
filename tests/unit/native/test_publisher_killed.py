"""Rings whose publisher was killed: what is whole is read, what was begun never was."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from ringcast import _core

PUBLISHER = """
import sys
from ringcast import _core
writer = _core.RingWriter(depth=8, capacity_bytes=1 << 20)
print(writer.ring_fd, writer.bell_fd, writer.incarnation, flush=True)
"""


def open_rings(program: Any) -> tuple[int, int, dict[str, int]]:
    ring_fd, bell_fd, incarnation = map(int, program.line().split())
    ring = os.open(f"/proc/{program.pid}/fd/{ring_fd}", os.O_RDONLY)
    bell = os.open(f"/proc/{program.pid}/fd/{bell_fd}", os.O_RDWR)
    return ring, bell, {"depth": 8, "capacity_bytes": 1 << 20, "incarnation": incarnation}


def test_killed_with_a_reservation_half_written(run_program: Callable[..., Any]) -> None:
    program = run_program(
        PUBLISHER
        + """
for i in range(4):
    writer.send(bytes([i]) * 200_000)
view = memoryview(writer.reserve(600_000))
view[:300_000] = b"?" * 300_000
print("half", flush=True)
sys.stdin.read()
""",
        "unused",
    )
    ring_fd, bell_fd, grant = open_rings(program)
    reader = _core.RingReader()
    reader.attach(ring_fd, bell_fd, **grant, start=_core.START_EARLIEST)
    history = _core.RingHistory()
    history.attach(ring_fd, **grant)
    program.expect("half")
    program.kill()
    assert history.bounds() == (2, 3)
    assert history.latest().data == b"\3" * 200_000
    message = reader.recv(timeout=0)
    assert (message.seq, message.data) == (2, b"\2" * 200_000)
    assert reader.recv(timeout=0).seq == 3
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)
    assert reader.counters()["corrupt"] == 0
    os.close(ring_fd)
    os.close(bell_fd)


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_moment(run_program: Callable[..., Any], seed: int) -> None:
    program = run_program(
        PUBLISHER
        + f"""
import random
sizes = random.Random({seed})
while True:
    writer.send(bytes([writer.next_seq % 256]) * sizes.randrange(400_000))
""",
        "unused",
    )
    ring_fd, bell_fd, grant = open_rings(program)
    reader = _core.RingReader()
    reader.attach(ring_fd, bell_fd, **grant)
    expected = None
    for _ in range(20 + seed):
        message = reader.recv(timeout=30)
        assert message.data == bytes([message.seq % 256]) * len(message.data)
        assert expected is None or message.seq == expected + message.lost
        expected = message.seq + 1
    program.signal(signal.SIGKILL)
    while True:
        try:
            message = reader.recv(timeout=0)
        except TimeoutError:
            if program.process.poll() is not None:
                break
            continue
        assert message.data == bytes([message.seq % 256]) * len(message.data)
    assert reader.counters()["corrupt"] == 0
    os.close(ring_fd)
    os.close(bell_fd)
