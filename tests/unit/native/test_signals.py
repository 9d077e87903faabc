"""Ctrl-C while waiting, handlers that use what they interrupt, and the end of the interpreter."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PRELUDE = """
import os, signal, sys, threading, time
from ringcast import _core

GEOMETRY = {"depth": 4, "capacity_bytes": 4096}
writer = _core.RingWriter(**GEOMETRY, max_wait_s=1000.0)

def reader_on(writer, **options):
    reader = _core.RingReader(**options)
    reader.attach(writer.ring_fd, writer.bell_fd, **GEOMETRY, incarnation=writer.incarnation)
    return reader

def quick_reader(**options):
    # One that was woken for many messages in a row, and so sleeps without a timer of its own.
    ring = _core.RingWriter(**GEOMETRY)
    reader = reader_on(ring, **options)
    def answer():
        for _ in range(40):
            asked.acquire()
            time.sleep(0.001)
            ring.send(b"x")
    asked = threading.Semaphore(0)
    threading.Thread(target=answer, daemon=True).start()
    for _ in range(40):
        asked.release()
        reader.recv()
    return reader
"""

WAITS = {
    "recv": "reader_on(writer).recv()",
    "recv, woken often": "quick_reader().recv()",
    "recv, woken often, timeout": "quick_reader().recv(timeout=1000)",
    "recv_many": "reader_on(writer).recv_many(5)",
    "recv, busy": "reader_on(writer, busy_poll=True).recv()",
    "recv, no ring": "_core.RingReader().recv()",
    "recv, mailbox": "reader = reader_on(writer); reader.use_mailbox(); reader.recv()",
    "recv, bridge": "reader = reader_on(writer); reader.use_bridge(_core.Bridge()); reader.recv()",
    "recv, timeout": "reader_on(writer).recv(timeout=1000)",
    "wait_newer": "reader_on(writer).wait_newer(0)",
    "wait_newer, no ring": "_core.RingReader().wait_newer(0)",
    "send": "reader = reader_on(writer, reliable=True); [writer.send(b'x') for _ in range(5)]",
    "send_many": "reader = reader_on(writer, reliable=True); writer.send_many([b'x'] * 5)",
    "reserve": "reader = reader_on(writer, reliable=True); [writer.send(b'x') for _ in range(4)]; writer.reserve(1)",
}


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait(run_program: Callable[..., Any], eventually: Callable[..., None], wait: str) -> None:
    program = run_program(
        PRELUDE
        + f"""
try:
    print("waiting", flush=True)
    {WAITS[wait]}
except KeyboardInterrupt:
    print("interrupted")
""",
        "unused",
    )
    program.expect("waiting")
    if "busy" not in wait:
        eventually(lambda: sleeps(program.pid))
    program.signal(signal.SIGINT)
    assert program.end() == "interrupted\n"


def test_ctrl_c_is_heard_although_a_neighbour_never_stops_ringing(run_program: Callable[..., Any]) -> None:
    program = run_program(
        PRELUDE
        + """
reader = reader_on(writer)
stop = False
def ring():
    other = reader_on(writer)
    while not stop:
        other.poke()      # bumps the bell that the receiver sleeps on
        reader.poke()
neighbour = threading.Thread(target=ring)
neighbour.start()
try:
    print("waiting", flush=True)
    reader.recv()
except KeyboardInterrupt:
    stop = True
    print("interrupted")
neighbour.join()
""",
        "unused",
    )
    program.expect("waiting")
    program.signal(signal.SIGINT)
    assert program.end() == "interrupted\n"


def test_handler_may_use_the_publisher_it_interrupts(
    run_program: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    # It makes room by reading, then sends on the very publisher that waits: before, it waited for itself.
    program = run_program(
        PRELUDE
        + """
reader = reader_on(writer, reliable=True)
for i in range(4):
    writer.send(b"%d" % i)

def handler(number, frame):
    print("handler", flush=True)
    for _ in range(4):
        reader.recv()
    writer.send(b"from the handler")

signal.signal(signal.SIGUSR1, handler)
print("waiting", flush=True)
writer.send(b"waited")
print([m.data for m in reader.recv_many(9)])
""",
        "unused",
    )
    program.expect("waiting")
    eventually(lambda: sleeps(program.pid))
    program.signal(signal.SIGUSR1)
    program.expect("handler")
    assert program.end() == "[b'from the handler', b'waited']\n"


def test_handler_may_close_the_publisher_it_interrupts(
    run_program: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    program = run_program(
        PRELUDE
        + """
from ringcast.errors import ClosedError
reader = reader_on(writer, reliable=True)
for i in range(4):
    writer.send(b"%d" % i)
signal.signal(signal.SIGUSR1, lambda number, frame: writer.close())
print("waiting", flush=True)
try:
    writer.send_many([b"waited", b"in vain"])
except ClosedError:
    print("closed")
""",
        "unused",
    )
    program.expect("waiting")
    eventually(lambda: sleeps(program.pid))
    program.signal(signal.SIGUSR1)
    assert program.end() == "closed\n"


def test_handler_that_does_not_raise_does_not_end_a_wait(
    run_program: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    program = run_program(
        PRELUDE
        + """
reader = reader_on(writer)
signal.signal(signal.SIGUSR1, lambda number, frame: writer.send(b"from the handler"))
print("waiting", flush=True)
print(reader.recv().data)
""",
        "unused",
    )
    program.expect("waiting")
    eventually(lambda: sleeps(program.pid))
    program.signal(signal.SIGUSR1)
    assert program.end() == "b'from the handler'\n"


@pytest.mark.parametrize("wait", ["recv", "send", "wait_newer", "recv, busy"])
def test_threads_that_wait_for_ever_do_not_abort_the_end(run_program: Callable[..., Any], wait: str) -> None:
    # Tearing the interpreter down takes longer than a slice of waiting, so the thread wakes up in the middle of it.
    program = run_program(
        PRELUDE
        + f"""
import time
def wait():
    {WAITS[wait]}
threading.Thread(target=wait, daemon=True).start()
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.6)
slow = Slow()
print("ending", flush=True)
""",
        "unused",
    )
    program.expect("ending")
    program.end(status=0)
