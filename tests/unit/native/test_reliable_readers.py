"""Readers the publisher waits for: its bound, what both sides are told, and readers that die."""

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ringcast import _core
from ringcast.errors import QosMismatch, SlowSubscriber


def test_publisher_waits_and_nothing_is_lost(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=30.0)
    reader = ring.reader(reliable=True)
    sending = threading.Thread(target=lambda: [ring.send(b"%d" % i) for i in range(500)])
    sending.start()
    for i in range(500):
        message = reader.recv(timeout=30)
        assert (message.data, message.lost) == (b"%d" % i, 0)
    sending.join()
    assert ring.writer.counters()["overruns"] == 0


def test_a_wait_is_counted_once_per_message(make_ring: Any) -> None:
    ring = make_ring(depth=1, max_wait_s=0.1)  # several slices long
    reader = ring.reader(reliable=True)
    ring.send(b"x")
    with pytest.raises(SlowSubscriber):
        ring.send(b"y")
    assert ring.writer.counters()["waits"] == 1
    ring.send(b"y")  # to a reader passed over, so without a wait
    assert ring.writer.counters()["waits"] == 1
    assert reader.recv().data == b"y"


def test_slow_reader_is_named_and_passed_over(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0)
    reader = ring.reader(reliable=True)
    for _ in range(4):
        ring.send(b"x")
    with pytest.raises(SlowSubscriber) as caught:
        ring.send(b"y")
    assert caught.value.pids == (os.getpid(),)
    assert caught.value.waited_s == 0.0
    assert ring.writer.next_seq == 4
    assert ring.send(b"y") == 4  # sending again goes through at once
    assert ring.writer.counters()["overruns"] == 1
    message = reader.recv()
    assert (message.seq, message.lost) == (1, 1)


def test_reader_passed_over_is_waited_for_again_once_it_has_caught_up(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0)
    reader = ring.reader(reliable=True)
    for _ in range(4):
        ring.send(b"x")
    with pytest.raises(SlowSubscriber):
        ring.send(b"y")
    for _ in range(10):
        ring.send(b"y")
    assert len(reader.recv_many(10)) == 4
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)
    for _ in range(4):
        ring.send(b"z")
    with pytest.raises(SlowSubscriber):
        ring.send(b"z")


def test_skipping_publisher_does_not_raise(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0, skip_slow=True)
    reader = ring.reader(reliable=True)
    for i in range(20):
        assert ring.send(b"x") == i
    assert ring.writer.counters()["overruns"] == 1
    assert reader.recv().lost == 16


def test_readers_that_did_not_ask_slow_nobody(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0)
    ring.reader()
    for _ in range(20):
        ring.send(b"x")
    assert ring.writer.counters()["waits"] == 0


def test_reading_the_largest_message_makes_room_while_it_is_worked_on(make_ring: Any) -> None:
    ring = make_ring(depth=64, capacity_bytes=1 << 16, max_wait_s=0.0)
    reader = ring.reader(reliable=True)
    for _ in range(5):
        ring.send(bytes(1 << 16))
        assert len(reader.recv().data) == 1 << 16


def test_busy_reader_that_has_read_everything_makes_room(make_ring: Any) -> None:
    ring = make_ring(depth=64, capacity_bytes=1 << 16, max_wait_s=0.0)
    reader = ring.reader(reliable=True, busy_poll=True)
    for _ in range(5):
        ring.send(b"small")
        reader.recv()
        with pytest.raises(TimeoutError):
            reader.recv(timeout=0.001)
        ring.send(bytes(1 << 16))
        reader.recv()


def test_slots_run_out_and_come_back(make_ring: Any) -> None:
    ring = make_ring()
    readers = [ring.reader(reliable=True) for _ in range(_core.RELIABLE_SLOTS)]
    with pytest.raises(QosMismatch) as caught:
        ring.reader(reliable=True)
    assert caught.value.asked == "reliable delivery"
    ring.reader()
    readers[7].close()
    ring.reader(reliable=True)


@pytest.mark.parametrize("end", ["close", "detach", "drop"])
def test_reader_that_leaves_holds_nobody(make_ring: Any, end: str) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0)
    reader = ring.reader(reliable=True)
    for _ in range(4):
        ring.send(b"x")
    if end == "close":
        reader.close()
    elif end == "detach":
        reader.detach(ring.writer.incarnation, drain=False)
        with pytest.raises(TimeoutError):
            reader.recv(timeout=0)
    else:
        del reader
    for _ in range(20):
        ring.send(b"x")
    assert ring.writer.counters()["overruns"] == 0


READER = """
import sys
from ringcast import _core
ring_fd, bell_fd, incarnation = map(int, sys.stdin.readline().split())
reader = _core.RingReader(reliable=True)
pid = int(sys.stdin.readline())
import os
ring, bell = (os.open(f"/proc/{pid}/fd/{fd}", flags) for fd, flags in ((ring_fd, os.O_RDONLY), (bell_fd, os.O_RDWR)))
reader.attach(ring, bell, depth=4, capacity_bytes=4096, incarnation=incarnation)
print("attached", flush=True)
for message in iter(reader.recv, None):
    print(message.seq, message.lost, flush=True)
    sys.stdin.readline()
"""


def test_killed_reader_releases_the_publisher(make_ring: Any, run_program: Callable[..., Any]) -> None:
    ring = make_ring(depth=4, max_wait_s=1000.0)
    program = run_program(READER, "unused")
    program.tell(f"{ring.writer.ring_fd} {ring.writer.bell_fd} {ring.writer.incarnation}")
    program.tell(str(os.getpid()))
    program.expect("attached")
    ring.send(b"x")
    program.expect("0 0")
    for _ in range(3):
        ring.send(b"x")
    program.process.kill()  # it is not waited for: a zombie is dead enough
    for _ in range(20):
        ring.send(b"x")
    assert ring.writer.counters()["overruns"] == 0


def test_daemon_frees_the_slots_of_the_dead(make_ring: Any) -> None:
    ring = make_ring(depth=4, max_wait_s=0.0)
    reader = ring.reader(reliable=True)
    monitor = ring.monitor()
    assert monitor.free_slots(0) == 0
    assert monitor.free_slots(os.getpid() + 1) == 0
    for _ in range(4):
        ring.send(b"x")
    assert monitor.free_slots(os.getpid()) == 1
    ring.send(b"x")
    # Taken for dead by mistake it finds itself another slot.
    assert [m.seq for m in reader.recv_many(9)] == [1, 2, 3, 4]
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)
    for _ in range(4):
        ring.send(b"x")
    with pytest.raises(SlowSubscriber):
        ring.send(b"x")
