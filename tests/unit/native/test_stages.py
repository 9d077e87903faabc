"""The hook in `send`, the ring a stage writes, and the stage between them."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from ringcast import _core
from ringcast.codec import find
from ringcast.errors import ClosedError, MessageTooLarge
from ringcast.model.tag import TagAttributes
from ringcast.scaling.averaging import averaged
from ringcast.scaling.stage import Stage, StageSource
from ringcast.testing.waiting import drained

IMAGE = TagAttributes(codec="image", max_wait_s=0.0)
CODEC = find("image").bind(None)


def attached(writer, **how):
    reader = _core.RingReader()
    reader.attach(
        writer.ring_fd, writer.bell_fd, depth=writer.depth, capacity_bytes=writer.capacity_bytes,
        incarnation=writer.incarnation, **how,
    )  # fmt: skip
    return reader


def source_of(writer):
    return StageSource(writer.ring_fd, writer.bell_fd, writer.depth, writer.capacity_bytes, writer.incarnation)


def publisher(depth=64, **how):
    return _core.RingWriter(depth=depth, capacity_bytes=1 << 20, encode=CODEC.encode, **how)


def frame(value):
    return np.full((8, 8), value, np.uint8)


def test_the_hook_is_called_after_each_way_of_sending():
    writer = _core.RingWriter(depth=16, capacity_bytes=4096)
    seen = []
    writer.send(b"before")
    writer.set_stage(lambda: seen.append(writer.next_seq))
    writer.send(b"x")
    writer.send_many([b"x", b"y"])
    writer.reserve(4).commit()
    writer.set_stage(None)
    writer.send(b"after")
    assert seen == [2, 4, 5]


def test_a_hook_that_raises_has_not_undone_the_message():
    writer = _core.RingWriter(depth=16, capacity_bytes=4096)
    writer.set_stage(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        writer.send(b"x")
    assert writer.next_seq == 1


def test_a_hook_may_take_itself_away_and_send():
    writer = _core.RingWriter(depth=16, capacity_bytes=4096)

    def once():
        writer.set_stage(None)
        writer.send(b"from the hook")

    writer.set_stage(once)
    assert writer.send(b"x") == 0
    assert writer.next_seq == 2


def test_a_writer_and_its_hook_are_collected():
    class Holder(_core.RingWriter):
        pass

    writer = Holder(depth=16, capacity_bytes=4096)
    writer.set_stage(lambda w=writer: None)
    gone = weakref.ref(writer)
    del writer
    gc.collect()
    assert gone() is None


def test_numbers_times_and_loss_are_the_publishers():
    writer = _core.StageWriter(depth=8, capacity_bytes=4096, first_seq=10)
    reader = attached(writer, start=10)
    assert writer.next_seq == 10
    writer.put(b"a", seq=12, event_ns=3, sent_ns=4, discardable=True)
    writer.put((b"b", b"c"), seq=16, event_ns=5, sent_ns=6, lost=2)
    assert writer.next_seq == 17
    found = [(m.seq, m.event_ns, m.sent_ns, m.discardable, m.lost, m.data) for m in drained(reader)]
    # Begun at 10, the reader never had 10 and 11, whatever the writer says of the first; then it believes the writer.
    assert found == [(12, 3, 4, True, 2, b"a"), (16, 5, 6, False, 2, b"bc")]
    with pytest.raises(MessageTooLarge):
        writer.put(bytes(5000), seq=17, event_ns=0, sent_ns=0)
    writer.close()
    with pytest.raises(ClosedError):
        writer.put(b"x", seq=18, event_ns=0, sent_ns=0)


def test_a_stage_inside_send():
    writer = publisher()
    stage = Stage(source_of(writer), IMAGE, (2, 2), every=2)
    reader = attached(stage.writer, decode=CODEC.decode)
    writer.set_stage(stage.pump)
    frames = [np.random.default_rng(i).integers(0, 256, (8, 8), np.uint8) for i in range(7)]
    for one in frames:
        writer.send(one)
    found = drained(reader)
    assert [(msg.seq, msg.lost) for msg in found] == [(0, 0), (2, 0), (4, 0), (6, 0)]
    assert all((msg.data == averaged(frames[msg.seq], 2, 2)).all() for msg in found)


def test_threads_that_share_a_publisher_keep_the_order():
    writer = publisher(depth=4096)
    stage = Stage(source_of(writer), IMAGE, (1, 1))
    writer.set_stage(stage.pump)

    def send():
        for _ in range(200):
            writer.send(frame(1))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = drained(attached(stage.writer, start=0))
    assert [(msg.seq, msg.lost) for msg in found] == [(i, 0) for i in range(800)]


def test_what_its_source_lost_and_what_it_could_not_scale_is_lost_to_its_readers():
    writer = publisher(depth=4)
    stage = Stage(source_of(writer), IMAGE, (2, 2), passed=1)
    reader = attached(stage.writer, start=0)
    for value in range(10):
        writer.send(frame(value))
    assert stage.pump() == 4
    bad = _core.RingWriter(depth=4, capacity_bytes=4096)
    spoilt = Stage(source_of(bad), IMAGE, (2, 2))
    for payload in (b"no image", b"".join(map(bytes, CODEC.encode(frame(3)))), b""):
        bad.send(payload)
        spoilt.pump()
    assert (spoilt.failed, [(m.seq, m.lost) for m in drained(attached(spoilt.writer, start=0))]) == (2, [(1, 1)])
    first = drained(reader)[0]
    assert (first.seq, first.lost) == (6, 6)


def test_run_scales_what_is_there_when_it_is_told_to_end():
    writer = publisher()
    stage = Stage(source_of(writer), IMAGE, (2, 2))
    ended = threading.Event()
    thread = threading.Thread(target=stage.run, args=(ended.is_set,))
    thread.start()
    writer.send(frame(1))
    reader = attached(stage.writer, start=0)
    assert reader.recv(timeout=30).seq == 0
    writer.send(frame(2))
    ended.set()
    stage.poke()
    thread.join(30)
    assert not thread.is_alive()
    assert reader.recv(timeout=30).seq == 1
    stage.close()


def test_a_reliable_reader_is_waited_for_within_the_bound_and_then_passed_over():
    writer = _core.StageWriter(depth=4, capacity_bytes=4096, max_wait_s=0.01)
    reader = _core.RingReader(reliable=True)
    reader.attach(
        writer.ring_fd, writer.bell_fd, depth=4, capacity_bytes=writer.capacity_bytes, incarnation=writer.incarnation,
        start=0,
    )  # fmt: skip
    for seq in range(6):
        writer.put(b"x", seq=seq, event_ns=0, sent_ns=0)
    assert [(msg.seq, msg.lost) for msg in drained(reader)][-1] == (5, 0)
    done = threading.Event()
    patient = _core.StageWriter(depth=4, capacity_bytes=4096, max_wait_s=30.0)
    slow = _core.RingReader(reliable=True)
    slow.attach(
        patient.ring_fd, patient.bell_fd, depth=4, capacity_bytes=patient.capacity_bytes,
        incarnation=patient.incarnation, start=0,
    )  # fmt: skip

    def write():
        for seq in range(40):
            patient.put(b"x", seq=seq, event_ns=0, sent_ns=0)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert [slow.recv(timeout=30).lost for _ in range(40)] == [0] * 40
    thread.join(30)
    assert done.is_set()


def test_closing_while_others_look_leaves_them_an_answer_or_an_error() -> None:
    for _ in range(200):
        stage = _core.StageWriter(depth=1024, capacity_bytes=1 << 22)
        begin = threading.Barrier(3)

        def look(stage: _core.StageWriter = stage, begin: threading.Barrier = begin) -> None:
            begin.wait()
            while True:
                try:
                    assert stage.capacity_bytes == 1 << 22
                    stage.put(b"x", seq=stage.next_seq, event_ns=1, sent_ns=1)
                except ClosedError:
                    return

        lookers = [threading.Thread(target=look) for _ in range(2)]
        for thread in lookers:
            thread.start()
        begin.wait()
        stage.close()
        for thread in lookers:
            thread.join()
        assert stage.closed
