"""Channels are made urgent and usual again while messages flow: nothing is lost, repeated or put out of order, and what
is shown is what the kernels have."""

import contextlib
import json
import os
import subprocess
import sys
import threading

import pytest

from ringcast.errors import QosMismatch
from ringcast.model import schedule
from ringcast.transport.urgent import awake, scheduling


def grants(text):
    try:
        scheduling.check(text, "here")
    except QosMismatch:
        return False
    return True


FIFO, DEADLINE = grants("fifo:30"), grants("deadline:1ms/100ms")


def ringcast(node, *words):
    environment = {**os.environ, "RINGCAST_SOCKET": str(node.daemon.socket_path)}
    return subprocess.run(
        [sys.executable, "-m", "ringcast", *words], env=environment, capture_output=True, text=True, check=False
    )


@contextlib.contextmanager
def reserved(text, threads):
    """So many threads here have that reservation, asleep."""
    stop, ready = threading.Event(), threading.Barrier(threads + 1)

    def hold():
        assert scheduling.give(threading.get_native_id(), schedule.read(text)) == ""
        ready.wait()
        stop.wait()

    held = [threading.Thread(target=hold) for _ in range(threads)]
    for thread in held:
        thread.start()
    ready.wait()
    try:
        yield
    finally:
        stop.set()
        for thread in held:
            thread.join()


class Flow:
    """A publisher that sends until told to stop, and all that a subscriber elsewhere received."""

    def __init__(self, a, b, eventually, transport, **options):
        self.a, self.b, self.eventually = a, b, eventually
        self.tag = f"flow/{transport}"
        self.pub = a.session.publisher(self.tag, depth=65536)
        eventually(lambda: b.knows(self.tag))
        self.sub = b.session.subscribe(self.tag, transport=transport, **options)
        self.got = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._take)]
        for thread in self._threads:
            thread.start()

    def _send(self):
        while not self._stop.wait(0.0005):
            self.pub.send(b"x")
        while self._threads[1].is_alive():  # the last ones may be lost
            self.pub.send(b"end")
            self._threads[1].join(0.002)

    def _take(self):
        while not self.got or self.got[-1].data != b"end":
            self.got.append(self.sub.recv(timeout=30))

    def channels(self):
        rows = [*self.a.session.channels(), *self.b.session.channels()]
        return {row.direction: row for row in rows if row.tag == self.tag}

    def has(self, priority):
        """Until both ends are so, and messages came that way; what the kernels have of each."""

        def settled():
            found = self.channels()
            incoming = self.b.incoming(tag=self.tag)
            return (
                len(incoming) == 1
                and incoming[0].messages > 20
                and {row.priority for row in found.values()} == {priority}
            )

        self.eventually(settled)
        found = self.channels()
        return found["out"].in_force, found["in"].in_force

    def end(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        numbers = [msg.seq for msg in self.got]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "none twice, out of order or missing"
        return self.got


@pytest.fixture
def flow(make_mesh, eventually):
    made = []
    nodes = []

    def start(transport, **options):
        nodes.extend(make_mesh(2) if not nodes else ())
        made.append(Flow(*nodes, eventually, transport, **options))
        return made[-1]

    yield start
    for one in made:
        one._stop.set()
        one.sub.close()


def test_classes_and_schedules_by_every_transport(flow):
    for transport in ("udp", "nak", "tcp", "multicast+nak"):
        one = flow(transport, reliable=transport == "tcp")
        normal = one.has("")
        assert [(end.dscp, end.queue) for end in normal] == [("CS0", 0)] * 2
        one.sub.prioritise("high")
        sent, came = one.has("high")
        assert [(end.dscp, end.queue) for end in (sent, came)] == [("AF42", 6)] * 2
        assert came.own
        assert came.thread != normal[1].thread
        one.a.session.set_channel(one.tag, sched="fifo:30") if FIFO else one.sub.prioritise(sched="fifo:30")
        sent, came = one.has("high fifo:30")
        assert sent.thread
        assert sent.own
        assert "memory" in sent.refused or sent.locked_bytes > 65536  # all of the ring
        if FIFO:
            assert (sent.sched, came.sched, sent.refused, came.refused) == ("fifo:30", "fifo:30", "", "")
            allowed = os.access(awake.DEVICE, os.R_OK | os.W_OK)
            assert [end.wake_us is not None for end in (sent, came)] == [allowed] * 2
        else:
            assert sent.refused
            assert came.refused
        one.a.session.set_channel(one.tag, priority="normal", sched="other")
        sent, came = one.has("")
        assert [(end.dscp, end.queue, end.wake_us) for end in (sent, came)] == [("CS0", 0, None)] * 2
        assert came.thread == normal[1].thread  # the shared one again
        one.end()


def test_subscribers_of_one_node_with_different_classes_have_channels_apart(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("x", depth=1024)
    eventually(lambda: b.knows("x"))
    usual, urgent = b.session.subscribe("x"), b.session.subscribe("x")
    assert len(b.incoming(tag="x")) == 1
    number = sorted(row.info.id for row in b.session.tag("x").subscribers(local=True))[1]
    done = ringcast(a, "set", "x", "--subscriber", str(number), "--priority", "critical", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"][f"b#{number}"]["priority"] == "critical"
    assert sorted(row.priority for row in b.incoming(tag="x")) == ["", "critical"]  # in force on return
    pub.send(b"end")
    assert take(usual, b"end")[-1].seq == take(urgent, b"end")[-1].seq
    shown = ringcast(b, "channels").stdout
    assert "in force" in shown
    assert "VA" in shown
    urgent.close()
    eventually(lambda: [row.priority for row in b.incoming(tag="x")] == [""])


def test_the_tags_own_priority_and_what_counts_before_it(make_mesh, eventually):
    a, b = make_mesh(2)
    tag = a.session.tag("x", priority="low")
    pub = tag.publisher()
    eventually(lambda: b.knows("x"))
    usual = b.session.subscribe("x")
    assert [row.priority for row in b.incoming(tag="x")] == ["low"]
    sub = b.session.subscribe("x", priority="high")
    assert sorted(row.priority for row in b.incoming(tag="x")) == ["high", "low"]
    a.session.set_channel("x", node="b", dscp="EF")
    eventually(lambda: sorted(row.in_force.dscp for row in b.incoming(tag="x")) == ["CS0", "EF"])
    sub.prioritise("")
    eventually(lambda: [row.priority for row in b.incoming(tag="x")] == ["low EF"])
    for one in (usual, sub, pub):
        one.close()


def test_what_cannot_be_is_refused_and_changes_nothing(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", priority="high")
    for wrong, said in (
        ({"priority": "urgent"}, "the classes are"), ({"dscp": "AF99"}, "a DSCP is"), ({"sched": "fifo:0"}, "1 to 99"),
        ({"sched": "deadline:2ms/1ms"}, "runtime <= deadline"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            a.session.set_channel("x", **wrong)
        with pytest.raises(ValueError, match=said):
            sub.prioritise(**wrong)
    with pytest.raises(ValueError, match="urgent"):
        b.session.subscribe("x", priority="urgent")
    with pytest.raises(QosMismatch, match="priority must be"):
        b.session.tag("y", priority="urgent")
    refused = ringcast(a, "set", "x", "--sched", "fifo:100")
    assert refused.returncode == 2
    assert "1 to 99" in refused.stderr
    if DEADLINE:
        with reserved("deadline:3900ms/4s", os.cpu_count() - 1), pytest.raises(QosMismatch, match="does not fit"):
            a.session.set_channel("x", sched="deadline:3900ms/4s")
    assert a.session.tags("x")[0].settings == {}
    assert [row.priority for row in b.incoming(tag="x")] == ["high"]
    pub.close()


@pytest.mark.skipif(not (FIFO and DEADLINE) or os.cpu_count() < 2, reason="needs root and two cores")
def test_a_reservation_that_fits_one_thread_and_not_all_is_taken_back(make_mesh, eventually):
    """Both nodes share a kernel here: it grants each of them one thread, and not both."""
    a, b = make_mesh(2)
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x")
    a.session.set_channel("x", priority="high", sched="fifo:20")
    others = os.cpu_count() - 2
    with reserved("deadline:3900ms/4s", others) if others else contextlib.nullcontext():
        refused = ringcast(b, "set", "x", "--sched", "deadline:3900ms/4s")
    assert refused.returncode == 1
    assert "does not fit" in refused.stderr
    assert "smaller share" in refused.stderr
    assert a.session.tags("x")[0].settings[""].priority == "high fifo:20"
    eventually(lambda: [row.in_force.sched for row in b.incoming(tag="x")] == ["fifo:20"])
    pub.send(b"still there")
    assert sub.recv(timeout=10).data == b"still there"
    pub.close()


@pytest.mark.skipif(not DEADLINE, reason="needs root")
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_reservation_of_most_that_is_allowed_is_kept_when_the_channel_is_opened_anew(
    make_mesh, eventually, tmp_path, transport
):
    config = tmp_path / "ringcast.toml"
    config.write_text("[limits]\nsched_share = 0.05\n")
    limited = {"RINGCAST_CONFIG": str(config)}
    a, b = make_mesh(2, a=limited, b=limited)
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport=transport)

    def in_force():
        rows = [row for node in (a, b) for row in node.session.channels() if row.tag == "x"]
        return [(row.priority, row.in_force.sched, row.in_force.refused) for row in rows]

    a.session.set_channel("x", sched="deadline:4ms/100ms")
    eventually(lambda: in_force() == [("deadline:4ms/100ms", "deadline:4ms/100ms", "")] * 2)
    a.session.set_channel("x", priority="critical")
    eventually(lambda: in_force() == [("critical deadline:4ms/100ms", "deadline:4ms/100ms", "")] * 2)
    a.session.set_channel("x", sched="deadline:5ms/100ms")
    eventually(lambda: in_force() == [("critical deadline:5ms/100ms", "deadline:5ms/100ms", "")] * 2)
    with pytest.raises(QosMismatch, match=r"limits\.sched_share"):
        a.session.set_channel("x", sched="deadline:6ms/100ms")
    assert in_force() == [("critical deadline:5ms/100ms", "deadline:5ms/100ms", "")] * 2
    pub.send(b"still there")
    assert sub.recv(timeout=10).data == b"still there"
