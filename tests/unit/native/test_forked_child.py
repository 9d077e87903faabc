"""Everything made before a fork is dead in the child, and its end there disturbs nobody."""

from collections.abc import Callable
from typing import Any

import pytest

PRELUDE = """
import gc, os, select, sys
from ringcast import _core
from ringcast.errors import ForkedError
os.register_at_fork(after_in_child=_core.forked)

GEOMETRY = {"depth": 4, "capacity_bytes": 4096}
writer = _core.RingWriter(**GEOMETRY)
grant = {**GEOMETRY, "incarnation": writer.incarnation}
reader = _core.RingReader(reliable=True)
reader.attach(writer.ring_fd, writer.bell_fd, **grant)
history = _core.RingHistory()
history.attach(writer.ring_fd, **grant)
bridge = _core.Bridge()
reservation = _core.RingWriter(**GEOMETRY).reserve(8)

def in_child(body):
    child = os.fork()
    if child == 0:
        try:
            body()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def run(run_program: Callable[..., Any], source: str) -> None:
    assert run_program(PRELUDE + source + '\nprint("good")\n', "unused").end() == "good\n"


@pytest.mark.parametrize(
    "use",
    [
        "writer.send(b'x')", "writer.send_many([b'x'])", "writer.reserve(1)", "writer.counters()", "writer.ring_fd",
        "reader.recv()", "reader.recv_nowait()", "reader.recv_many(1)", "reader.newest()", "reader.counters()",
        "reader.latency_histogram()", "reader.use_mailbox()", "reader.incarnations", "reader.wait_newer(0)",
        "history.latest()", "history.at(0)", "history.bounds()", "history.incarnations",
        "bridge.mailbox_fd", "reservation.commit()", "reservation.__enter__()",
    ],
)  # fmt: skip
def test_use_in_the_child_is_a_clear_error(run_program: Callable[..., Any], use: str) -> None:
    run(
        run_program,
        f"""
def body():
    try:
        {use}
    except ForkedError as error:
        assert "parent" in str(error)
        return
    raise AssertionError("no error")
in_child(body)
""",
    )


def test_closing_and_collecting_in_the_child_leaves_the_parent_alone(run_program: Callable[..., Any]) -> None:
    run(
        run_program,
        """
reader.use_bridge(bridge)
def body():
    global writer, reader, history, bridge, reservation
    for one in (writer, reader, history, bridge):
        one.close()
    reservation.cancel()
    del writer, reader, history, bridge, reservation
    gc.collect()
in_child(body)
reservation.commit()
assert not writer.closed and not reader.closed
for i in range(10):
    writer.send(b"%d" % i)
    message = reader.recv(timeout=30)
    assert (message.data, message.lost) == (b"%d" % i, 0)
# The child gave no slot back that is the parent's.
for _ in range(4):
    writer.send(b"x")
try:
    writer.send(b"one too many")
except Exception as error:
    assert "reliable" in str(error)
else:
    raise AssertionError("the slot is gone")
""",
    )


def test_objects_of_its_own_work_in_the_child(run_program: Callable[..., Any]) -> None:
    run(
        run_program,
        """
fds = writer.ring_fd, writer.bell_fd
def body():
    own = _core.RingReader()
    own.attach(*fds, **grant, start=_core.START_EARLIEST)
    assert own.recv(timeout=30).data == b"for the child"
    mine = _core.RingWriter(**GEOMETRY)
    mine.send(b"x")
    bridge = _core.Bridge()
    bridge.close()
writer.send(b"for the child")
in_child(body)
""",
    )


def test_fork_while_other_threads_are_inside(run_program: Callable[..., Any]) -> None:
    run(
        run_program,
        """
import threading
stop = threading.Event()
def receive():
    while not stop.is_set():
        try:
            reader.recv(timeout=0.01)
        except TimeoutError:
            pass
def send():
    big = _core.RingWriter(depth=4, capacity_bytes=1 << 20)
    while not stop.is_set():
        big.send(bytes(500_000))
        try:
            writer.send(b"x")
        except Exception:
            pass
reader.use_bridge(bridge)
threads = [threading.Thread(target=receive), threading.Thread(target=send)]
for thread in threads:
    thread.start()
def body():
    global writer, reader, history, bridge, reservation
    del writer, reader, history, bridge, reservation
    gc.collect()
for _ in range(20):
    in_child(body)
stop.set()
for thread in threads:
    thread.join()
""",
    )
