"""A reader, or a whole node, does not keep up."""

import os
import signal
import threading


def test_reliable_over_tcp_loses_nothing(make_mesh, eventually, take):
    a, b = make_mesh(2)
    # The ring holds a few messages only, so the publisher has to wait for the reader on the other node.
    pub = a.session.publisher("patient", depth=16, capacity_bytes=1 << 16, max_wait_s=30.0)
    eventually(lambda: b.knows("patient"))
    sub = b.session.subscribe("patient", reliable=True)
    count, payload = 2000, bytes(2000)
    halves = threading.Event()

    def send():
        for i in range(count):
            if i == count // 2:
                halves.set()
            pub.send(payload if i < count - 1 else b"end")

    sender = threading.Thread(target=send)
    sender.start()
    # Nothing is read for now: buffers on the way fill, and the publisher stands still.
    eventually(lambda: pub.counters()["waits"] > 0)
    assert not halves.is_set()
    got = take(sub, b"end")
    sender.join()
    assert [msg.seq for msg in got] == list(range(count))
    assert {msg.lost for msg in got} == {0}


def test_a_node_that_stands_still_slows_nobody(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("lively", depth=256)
    eventually(lambda: b.knows("lively") and c.knows("lively"))
    slow = [b.session.subscribe("lively"), b.session.subscribe("lively", transport="tcp")]
    fast, here = c.session.subscribe("lively"), a.session.subscribe("lively")
    os.kill(b.daemon.process.pid, signal.SIGSTOP)
    try:
        for i in range(5000):
            pub.send(b"%d" % i)
            if i % 100 == 99:  # the reader keeps up; what the stopped node does is no matter
                for sub in (fast, here):
                    assert [msg.lost for msg in take(sub, b"%d" % i)] == [0] * 100
        assert pub.counters()["waits"] == 0
    finally:
        os.kill(b.daemon.process.pid, signal.SIGCONT)
    eventually(lambda: b.here() == {"a", "b", "c"} and len(b.incoming()) == 2)
    pub.send(b"end")
    for sub in slow:
        seqs = [msg.seq for msg in take(sub, b"end")]
        assert seqs == sorted(set(seqs))
