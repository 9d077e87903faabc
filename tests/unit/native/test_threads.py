"""Several threads on one object: refused, woken or served, never stuck."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from ringcast import _core
from ringcast.errors import BusyError, ClosedError, WouldBlock
from ringcast.testing.waiting import PATIENCE_S


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Run something on another thread."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def receive(reader: _core.RingReader) -> Any:
    """`recv`, however often somebody asks at the same moment whether we are at it."""
    while True:
        try:
            return reader.recv()
        except BusyError:
            continue


def wait_until_receiving(reader: _core.RingReader) -> None:
    """Until another thread is inside recv. Asking is how one finds out."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            with pytest.raises(WouldBlock):
                reader.recv_nowait()
        except BusyError:
            return
    raise AssertionError("nobody is inside recv")


def test_second_receiver_is_refused(ring: Any, beside: Any) -> None:
    reader = ring.reader()
    waiting = beside(receive, reader)
    wait_until_receiving(reader)
    for use in (reader.recv, reader.recv_nowait, lambda: reader.recv_many(1)):
        with pytest.raises(BusyError):
            use()
    ring.send(b"x")
    assert waiting.result(PATIENCE_S).data == b"x"
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)


@pytest.mark.parametrize("way", ["direct", "none", "many", "mailbox", "bridge", "busy"])
def test_closing_from_another_thread_wakes_the_receiver(make_ring: Any, beside: Any, way: str) -> None:
    rings = [make_ring() for _ in range({"none": 0, "many": 5}.get(way, 1))]
    reader = _core.RingReader(busy_poll=way == "busy")
    for ring in rings:
        ring.attach(reader)
    bridge = _core.Bridge()
    if way == "mailbox":
        reader.use_mailbox()
    if way == "bridge":
        reader.use_bridge(bridge)
    waiting = beside(receive, reader)
    wait_until_receiving(reader)
    reader.close()
    with pytest.raises(ClosedError):
        waiting.result(PATIENCE_S)
    assert reader.incarnations == []


def test_closing_wakes_who_waits_for_a_newer_one(ring: Any, beside: Any) -> None:
    reader = ring.reader()
    waiting = beside(reader.wait_newer, 0)
    reader.close()
    with pytest.raises(ClosedError):
        waiting.result(PATIENCE_S)


def test_failure_is_raised_once_what_is_held_has_been_read(ring: Any, beside: Any) -> None:
    reader = ring.reader()
    waiting = beside(receive, reader)
    wait_until_receiving(reader)
    reader.fail(KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        waiting.result(PATIENCE_S)
    ring.send(b"x")
    assert reader.recv().data == b"x"
    for _ in range(3):
        with pytest.raises(KeyError):
            reader.recv()
    reader.fail(None)
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)


def test_failure_does_not_grow_by_being_raised(ring: Any) -> None:
    reader = ring.reader()
    error = KeyError("gone")
    reader.fail(error)
    for _ in range(50):
        with pytest.raises(KeyError):
            reader.recv()
    frames = 0
    trace = error.__traceback__
    while trace is not None:
        frames, trace = frames + 1, trace.tb_next
    assert frames < 10


def test_ring_that_appears_is_heard_by_who_sleeps_already(make_ring: Any, beside: Any) -> None:
    for before in (0, 1):
        reader = _core.RingReader()
        for _ in range(before):
            make_ring().attach(reader)
        waiting = beside(receive, reader)
        wait_until_receiving(reader)
        ring = make_ring()
        ring.attach(reader)
        ring.send(b"x")
        assert waiting.result(PATIENCE_S).data == b"x"


def test_ring_that_goes_leaves_nobody_asleep_on_it(make_ring: Any, beside: Any) -> None:
    old, new = make_ring(), make_ring()
    reader = old.reader()
    waiting = beside(receive, reader)
    wait_until_receiving(reader)
    reader.detach(old.writer.incarnation, drain=False)
    new.attach(reader)
    new.send(b"x")
    assert waiting.result(PATIENCE_S).data == b"x"


def test_threads_share_a_publisher(make_ring: Any, beside: Any) -> None:
    ring = make_ring(depth=64, capacity_bytes=1 << 20, max_wait_s=PATIENCE_S)
    reader = ring.reader(reliable=True)
    lengths = (10, 100, 40_000)  # with the GIL and without

    def send(who: int) -> None:
        for i in range(300):
            ring.send(bytes([who]) * lengths[i % 3])

    sending = [beside(send, who) for who in range(3)]
    counts = [0, 0, 0]
    for seq in range(900):
        message = reader.recv(timeout=PATIENCE_S)
        assert (message.seq, message.lost) == (seq, 0)
        who = message.data[0]
        assert message.data == bytes([who]) * len(message.data)
        assert len(message.data) == lengths[counts[who] % 3]
        counts[who] += 1
    for one in sending:
        one.result(PATIENCE_S)


def test_publisher_closed_while_others_send_on_it(make_ring: Any, beside: Any) -> None:
    for _ in range(20):
        ring = make_ring(capacity_bytes=1 << 20)
        started = threading.Barrier(3)

        def send(ring: Any = ring, started: threading.Barrier = started) -> None:
            started.wait()
            while True:
                ring.send(b"x" * 40_000)

        sending = [beside(send) for _ in range(2)]
        started.wait()
        ring.writer.close()
        for one in sending:
            with pytest.raises(ClosedError):
                one.result(PATIENCE_S)


def test_publisher_closed_while_a_send_waits_for_room(make_ring: Any, beside: Any, eventually: Any) -> None:
    ring = make_ring(depth=1, max_wait_s=PATIENCE_S)
    reader = ring.reader(reliable=True)
    ring.send(b"x")
    waiting = beside(ring.send, b"y")
    eventually(lambda: ring.writer.counters()["waits"])
    closing = beside(ring.writer.close)
    reader.recv()
    # Whichever of the two has its turn first: neither waits for the other for ever.
    closing.result(PATIENCE_S)
    with contextlib.suppress(ClosedError):
        assert waiting.result(PATIENCE_S) == 1


def test_history_is_read_by_many_while_it_is_written(make_ring: Any, beside: Any) -> None:
    ring = make_ring(depth=8, capacity_bytes=1 << 18)
    ring.send(b"\0" * 8)
    history = ring.history()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            ring.send(bytes([ring.writer.next_seq % 256]) * (40_000 if ring.writer.next_seq % 4 == 0 else 100))

    def pull() -> None:
        for _ in range(300):
            message = history.latest()
            assert len(set(message.data)) == 1
            for one in history.range(message.seq, message.seq + 10):
                assert one.data[0] == one.seq % 256
                assert len(set(one.data)) == 1

    ring.send(b"\1")
    writing = beside(write)
    pulling = [beside(pull) for _ in range(3)]
    try:
        for one in pulling:
            one.result(PATIENCE_S * 4)
    finally:
        stop.set()
    writing.result(PATIENCE_S)
