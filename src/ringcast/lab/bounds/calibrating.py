"""What stages take on this machine: two daemons of our own, a publisher on one, readers on both.

Each stage is timed many times and its cost is the slowest of a thousand. Times during which a witness saw a core taken
away are left out, so that the machine is measured and not what the hypervisor did meanwhile; `ringcast.lab.bounds`
judges by the same witnesses. The share of a byte comes from a second, larger size. How long a core is kept by what
cannot be preempted, sleepers on all cores see, all the while and for some seconds more: that is rare.
Invariant: no daemon, reader or witness outlives it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import msgspec
import numpy as np

import ringcast
from ringcast.admission.calibration import Calibration, this_machine
from ringcast.admission.model import NS, Cost, Costs
from ringcast.lab.bounds.outsiders import NONE
from ringcast.lab.bounds.witness import LATE_NS, Sleepers, Taken, Witnesses, undisturbed
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.local_mesh import LocalNode, local_mesh
from ringcast.scaling.averaging import averaged
from ringcast.transport.urgent.awake import AWAKE

SMALL, LARGE = 64, 32 * 1024
COUNT = 1000
WAITS = ((0.0005, 3000), (0.01, 150))
"""Seconds, and how often: a thread that slept for long finds its caches cold."""
GAP_NS = 100_000
FIFO = 40
COMPUTING_NS = 400_000_000
"""Less than the kernel lets real-time threads have without a break (sched_rt_runtime_us)."""
SWITCH_NS = 2_000
HANDED_OVER, APART_S, ANEW = 75, 0.01, 4
"""The first message of a ring finds nothing in memory: so many rings are begun."""
LISTEN_S = 6.0
SLOWEST = 0.999
USUALLY = 0.95
"""Of the times that a thread is preempted: what is beyond is rare, and part of what a run of work meets once."""
_TAG = "ringcast/calibration"
_READER = """
import sys, ringcast
with ringcast.connect(sys.argv[1]) as session:
    sub = session.tag(sys.argv[2]).subscribe()
    print("ready", flush=True)
    for message in sub:
        pass
"""
_TAKER = """
import json, os, struct, sys, time, ringcast
socket, tag, fifo, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with ringcast.connect(socket) as session:
    sub = session.tag(tag).subscribe()
    if fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(fifo))
    print("ready", flush=True)
    seen = []
    for _ in range(count):
        message = sub.recv(10)
        seen.append((*struct.unpack("<Q", message.data), time.monotonic_ns()))
    print(json.dumps(seen), flush=True)
"""
_COMPUTER = """
import os, sys, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[1])))
print("ready", flush=True)
until = time.monotonic_ns() + int(sys.argv[2])
while time.monotonic_ns() < until:
    pass
"""


def calibrate(say: Callable[[str], None] = lambda text: None, account: str = NONE) -> Calibration:
    """Some seconds. With an account of this experiment's processes (`outsiders`), times at which others had a core are
    left out too. Raises RingcastError."""
    with tempfile.TemporaryDirectory(prefix="ringcast-calibrate-") as place:
        say("starting two nodes")
        with (
            local_mesh(("here", "there"), Path(place), say) as nodes,
            _urgent() as realtime,
            contextlib.ExitStack() as stack,
        ):
            watch = Stopwatch(stack.enter_context(Witnesses(account)))
            sleepers = stack.enter_context(Sleepers()) if realtime else None
            costs = _costs(nodes, watch, realtime, say)
            say("how long a ready thread waits")
            late = [ns for sleep_s, count in WAITS for ns in watch.late(sleep_s, count)]
            waking_ns = _quantile(late, SLOWEST)
            say("what a thread loses that is preempted")
            preemption_ns = watch.preempted() if realtime else 0.0
            say("how long a core is kept by what cannot be preempted")
            if sleepers is not None:
                before = len(sleepers.seen())  # while processes were started, which happens to no stream
                time.sleep(LISTEN_S)
                late += watch.undisturbed(sleepers.seen()[before:])
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    machine = this_machine(metadata.version("ringcast"))
    # A core may be away for LATE_NS without a witness that sees it, also while a thread computes.
    blocking_ns = max(late) + LATE_NS
    return Calibration(machine, costs, blocking_ns / NS, now, realtime, preemption_ns / NS, waking_ns / NS)


class Stopwatch:
    """Times calls, without those during which a core was taken away."""

    def __init__(self, witnesses: Witnesses) -> None:
        self._witnesses = witnesses

    def timed(
        self, call: Callable[[], object], count: int = COUNT, before: Callable[[], object] | None = None
    ) -> list[float]:
        """Nanoseconds of each call. `before` is called before each, and is not timed."""
        clock = time.monotonic_ns  # the witnesses' own
        spans = []
        for _ in range(count):
            if before is not None:
                before()
            start = clock()
            call()
            spans.append((start, clock()))
        return self.undisturbed(spans) or [float(done - began) for began, done in spans]

    def undisturbed(self, spans: Iterable[Taken]) -> list[float]:
        """How long those took during which no core was taken away."""
        return [float(done - began) for began, done in undisturbed(spans, self._witnesses.seen())]

    def late(self, sleep_s: float, count: int) -> list[float]:
        """By how many nanoseconds this thread is woken too late."""
        return [max(0.0, took - sleep_s * NS) for took in self.timed(partial(time.sleep, sleep_s), count)]

    def preempted(self) -> float:
        """Nanoseconds that this thread usually loses when a more important one wakes for a moment while all cores
        compute with real-time priorities: the sleepers are such."""
        with contextlib.ExitStack() as stack:
            for _ in affinity.cores()[1:]:
                # Only just less important than this thread.
                stack.enter_context(_process(_COMPUTER, str(FIFO - 1), str(2 * COMPUTING_NS)))
            clock, own = time.monotonic_ns, time.thread_time_ns
            lost: list[float] = []
            now, used = clock(), own()
            until = now + COMPUTING_NS
            while now < until:
                last, before = now, used
                now, used = clock(), own()
                if now - last - (used - before) > SWITCH_NS:
                    lost.append(float(now - last - (used - before)))
        return _quantile(lost, USUALLY) if lost else 0.0


def _costs(nodes: list[LocalNode], watch: Stopwatch, realtime: bool, say: Callable[[str], None]) -> Costs:
    here, there = nodes
    with ringcast.connect(here.socket) as session, ringcast.connect(there.socket) as other:
        say("publishing")
        tag = session.tag(f"{_TAG}/local", depth=256)
        publisher = tag.publisher()
        with _process(_READER, here.socket, tag.name):  # asleep until something comes, as subscribers are
            publisher.wait_for_subscribers(1, timeout=10)
            local = {size: watch.timed(partial(publisher.send, bytes(size)), before=_asleep) for size in (SMALL, LARGE)}
        say("pulling")
        history = tag.history()
        pulled = {}
        for size in (SMALL, LARGE):
            publisher.send(bytes(size))
            pulled[size] = watch.timed(history.latest, before=_asleep)
        say("receiving")
        taken = {size: _taking(session, size, watch) for size in (SMALL, LARGE)}
        handed_over = _handing_over(session, here, watch, realtime)
        say("sending to another node")
        sent, received = _sending(session, other, there, watch)
    say("scaling")
    image = {size: np.zeros((int(size**0.5), int(size**0.5)), np.uint8) for size in (SMALL, LARGE)}
    scaled = {
        size: watch.timed(partial(averaged, one, one.shape[0] // 2, one.shape[1] // 2)) for size, one in image.items()
    }
    publish = _cost(local)
    alone = {size: _quantile(local[size], 0.5) for size in local}
    send = _cost({size: [max(0.0, one - alone[size]) for one in sent[size]] for size in sent})
    # Of what the daemon takes only the mean is seen; its slowest is to its mean as the sender's is.
    tail = {size: _quantile(sent[size], SLOWEST) / max(1.0, _quantile(sent[size], 0.5)) for size in sent}
    receive = _cost({size: [received[size] * tail[size]] for size in received})
    # Into the ring, waking a thread that slept for long, and out of it: what is not publishing is delivering.
    waking_s = _quantile(handed_over, SLOWEST) / NS - publish.fixed_s
    deliver = _cost(taken)
    deliver = msgspec.structs.replace(deliver, fixed_s=max(deliver.fixed_s, waking_s))
    return Costs(publish=publish, send=send, receive=receive, deliver=deliver, scale=_cost(scaled), pull=_cost(pulled))


def _sending(
    session: ringcast.Session, other: ringcast.Session, there: LocalNode, watch: Stopwatch
) -> tuple[dict[int, list[float]], dict[int, float]]:
    """What `send` takes with a subscriber on another node, and the processor time of that node's daemon per message."""
    name = f"{_TAG}/remote"
    publisher = session.tag(name, depth=256).publisher()
    sent: dict[int, list[float]] = {}
    received: dict[int, float] = {}
    # Two: the process of a lone subscriber would receive by itself.
    with other.tag(name).subscribe(), other.tag(name).subscribe():
        publisher.wait_for_subscribers(2, timeout=10)
        for size in (SMALL, LARGE):
            body = bytes(size)
            before = affinity.cpu_ns(there.pid)
            sent[size] = watch.timed(partial(publisher.send, body), before=_asleep)
            received[size] = (affinity.cpu_ns(there.pid) - before) / COUNT
    return sent, received


def _taking(session: ringcast.Session, size: int, watch: Stopwatch) -> list[float]:
    tag = session.tag(f"{_TAG}/taken/{size}", depth=256)
    publisher, body = tag.publisher(), bytes(size)
    with tag.subscribe() as sub:
        return watch.timed(lambda: sub.recv_nowait().data, before=partial(publisher.send, body))


def _handing_over(session: ringcast.Session, here: LocalNode, watch: Stopwatch, realtime: bool) -> list[float]:
    """From before `send` until another process has the message, which sleeps for long between two."""
    spans: list[Taken] = []
    for number in range(ANEW):
        tag = session.tag(f"{_TAG}/handed-over/{number}", depth=256)
        publisher = tag.publisher()
        with _process(_TAKER, here.socket, tag.name, str(FIFO if realtime else 0), str(HANDED_OVER)) as taker:
            publisher.wait_for_subscribers(1, timeout=10)
            for _ in range(HANDED_OVER):
                time.sleep(APART_S)
                publisher.send(struct.pack("<Q", time.monotonic_ns()))
            assert taker.stdout is not None
            spans += [(began, done) for began, done in json.loads(taker.stdout.readline())]
    return watch.undisturbed(spans) or [float(done - began) for began, done in spans]


def _asleep() -> None:
    """Between two messages readers fall asleep again."""
    time.sleep(GAP_NS / NS)


def _cost(times: dict[int, list[float]]) -> Cost:
    small, large = (_quantile(times[size], SLOWEST) for size in (SMALL, LARGE))
    return Cost(fixed_s=small / NS, per_byte_s=max(0.0, large - small) / (LARGE - SMALL) / NS)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@contextlib.contextmanager
def _process(program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has said that it is ready; it ends with the block."""
    with subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def _urgent() -> Iterator[bool]:
    """This thread before all programs, where that is allowed."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO))
    except PermissionError:
        yield False
        return
    try:
        with AWAKE.held():  # as daemons do while channels have a schedule
            yield True
    finally:
        os.sched_setscheduler(0, before, parameters)
