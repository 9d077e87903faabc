"""How cost grows on one node: with tags, publishers behind a wildcard, subscribers, clients, depth, message size."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import ringcast
from growth.curve import Curve, growth
from growth.holders import Holders, daemon, memory_bytes
from harness.machine import cpu_ns
from harness.rows import Row, at_most, note, plain
from ringcast.testing.waiting import wait_until

US = 1e6
KIB = 1024
PATIENCE_S = 300.0
FILES_PER_TAG = 3
"""What a daemon holds open of a tag with one publisher: the ring, its bell, and the publisher's fan-out socket."""
FILES_BESIDE = 300
Found = Iterator[Curve | Row]


def best(seconds: Callable[[], float], tries: int = 7) -> float:
    """The lowest: what else the machine does only adds."""
    return min(seconds() for _ in range(tries))


def per_message(pub: ringcast.Publisher[bytes], sub: ringcast.Subscriber[bytes], count: int = 2000) -> float:
    """Seconds to send and receive one, in one thread: nobody sleeps and nobody is woken."""
    begin = time.perf_counter()
    for _ in range(count):
        pub.send(b"x" * 64)
        sub.recv_nowait()
    return (time.perf_counter() - begin) / count


def median_of(call: Callable[[], object], tries: int) -> float:
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def idle_percent(pids: Sequence[int], seconds: float) -> float:
    time.sleep(1.0)
    before, begin = sum(map(cpu_ns, pids)), time.monotonic_ns()
    time.sleep(seconds)
    return 100 * (sum(map(cpu_ns, pids)) - before) / (time.monotonic_ns() - begin)


def tags(place: Path, most: int) -> Found:
    """Tags on a node, each with a publisher and a subscriber."""
    costs, makes, memory = [], [], []
    allowed = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - FILES_BESIDE) // FILES_PER_TAG
    if allowed < most:
        yield note(
            f"{most} tags need {most * FILES_PER_TAG + FILES_BESIDE} open files of the daemon, and this machine allows "
            f"{resource.getrlimit(resource.RLIMIT_NOFILE)[1]}: measured with {allowed} (raise it with 'ulimit -Hn' as "
            "root, limits.conf or LimitNOFILE=)"
        )
        most = allowed
    with daemon(place) as (path, pid), Holders(path, 1000) as holders, ringcast.connect(path, start=False) as session:
        probe = session.tag("probe", depth=64, capacity_bytes=64 * KIB)
        pub, sub = probe.publisher(), probe.subscribe()
        for n in sorted({*_decades(most), most}):
            already = holders.held
            took = holders.grow_to("both", n)
            makes.append((n, US * took / (n - already)))
            costs.append((n, US * best(lambda: per_message(pub, sub))))
            memory.append((n, _memory_of_tags(holders, pid, n)))
        yield Curve("cost per message", "tags", "us", "constant", costs)
        yield Curve("making a tag, publisher and subscriber", "tags", "us", "constant", makes, grows_from=10)
        yield at_most(
            f"cost per message, {most} tags against 1", growth(Curve("", "", "", "constant", costs)), "times", 1.1
        )
        yield at_most(f"memory per tag with a publisher and a subscriber, {most} tags", memory[-1][1], "KiB", 64.0)
        yield at_most(
            "subscribe to an existing tag, p50",
            1e3 * _subscribing(session, "held/0", 50),
            "ms",
            1.0,
        )
        yield at_most(
            "connect, p50", 1e3 * median_of(lambda: ringcast.connect(path, start=False).close(), 30), "ms", 5.0
        )
        yield plain(f"list one of {most} tags, p50", 1e3 * median_of(lambda: session.tags("held/0"), 30), "ms")
        yield plain(f"daemon when idle, {most} tags", idle_percent([pid], 3.0), "% of a core")


def _subscribing(session: ringcast.Session, name: str, tries: int) -> float:
    """Seconds until `subscribe` returned; what closing takes is not asked."""
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        sub = session.subscribe(name)
        taken.append(time.perf_counter() - begin)
        sub.close()
    return statistics.median(taken)


def _memory_of_tags(holders: Holders, pid: int, n: int) -> float:
    """KiB a tag: everything but what as many processes without tags have."""
    bare = _bare_process_bytes()
    return (sum(map(memory_bytes, [pid, *holders.pids])) - bare * (1 + len(holders.all))) / n / KIB


def _bare_process_bytes() -> int:
    with subprocess.Popen(
        [sys.executable, "-c", "import ringcast, sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        used = memory_bytes(process.pid)
        process.stdin.close()
    return used


def publishers(place: Path, most: int) -> Found:
    """Publishers behind one wildcard, one of them active."""
    costs = []
    with daemon(place) as (path, _), Holders(path, 1000) as holders, ringcast.connect(path, start=False) as session:
        active = session.tag("wild/active", depth=4096, capacity_bytes=1 << 20).publisher()
        sub = session.subscribe("wild/*")
        for n in _decades(most):
            holders.grow_to("publishers", n - 1, name="wild")
            wait_until(lambda n=n: sub.stats().rings == n, patience_s=PATIENCE_S)
            costs.append((n, US * best(lambda: per_message(active, sub))))
    yield Curve("receive one of an active publisher", "publishers behind a wildcard", "us", "constant", costs)
    yield at_most(
        f"receive cost, {most} publishers behind a wildcard against 1",
        growth(Curve("", "", "", "constant", costs)), "times", 2.0,
    )  # fmt: skip


def subscribers(place: Path, most: int) -> Found:
    """Subscribers of one tag, all asleep: each is woken by every message."""
    costs = []
    with daemon(place) as (path, _), Holders(path, 50) as holders, ringcast.connect(path, start=False) as session:
        pub = session.tag("one", depth=4096).publisher()
        for n in [count for count in (1, 2, 5, 10, 20, 50, 100, 200) if count <= most]:
            holders.grow_to("sleepers", n, name="one")
            pub.wait_for_subscribers(n, 30.0)
            costs.append((n, US * median_of(lambda: (pub.send(b"x" * 64), time.sleep(0.002)), 200) - 2000.0))
    yield Curve("send", "sleeping subscribers", "us", "linear", costs, grows_from=5)


def clients(place: Path, most: int) -> Found:
    """Sessions that do nothing."""
    connects = []
    with daemon(place) as (path, pid), Holders(path, 50) as holders:
        for n in [count for count in (1, 10, 50, 100, 200, 500) if count <= most]:
            already = holders.held
            connects.append((n, US * holders.grow_to("sessions", n) / (n - already)))
        idle = idle_percent([pid, *holders.pids], 4.0)
    yield Curve("connect", "clients", "us", "constant", connects, grows_from=10)
    yield at_most(f"{most} clients and their daemon, all idle", idle, "% of a core", 0.1)


def stuck(place: Path) -> Found:
    """A reliable reader that never reads: publishers pass it over, and nobody works for it any more."""
    with daemon(place) as (path, pid), ringcast.connect(path, start=False) as session:
        tag = session.tag("stuck", depth=64, capacity_bytes=64 * KIB, max_wait_s=0.1)
        pub, sub = tag.publisher(on_slow="skip"), tag.subscribe()
        without = best(lambda: per_message(pub, sub))
        with tag.subscribe(reliable=True):
            for _ in range(100):
                pub.send(b"x")
                sub.recv_nowait()
            beside = best(lambda: per_message(pub, sub))
            idle = idle_percent([pid], 3.0)
    yield at_most("cost per message beside a stuck reliable reader, against without", beside / without, "times", 1.1)
    yield at_most("daemon beside a stuck reliable reader, idle", idle, "% of a core", 0.1)


def depths(place: Path, most: int) -> Found:
    """Messages that a ring holds."""
    sends, pulls = [], []
    with daemon(place) as (path, _), ringcast.connect(path, start=False) as session:
        for n in [16, *[10**power for power in range(2, 7) if 10**power <= most]]:
            tag = session.tag(f"depth/{n}", depth=n, capacity_bytes=64 * n)
            with tag.publisher() as pub, tag.subscribe() as sub:
                for _ in range(n + n // 2):
                    pub.send(b"x" * 16)
                sends.append((n, US * best(lambda pub=pub, sub=sub: per_message(pub, sub, 1000))))
                history = tag.history(publisher=pub)
                oldest, newest = history.bounds()
                middle = (oldest + newest) // 2
                pulls.append((n, US * median_of(lambda history=history, middle=middle: history.at(middle), 200)))
    yield Curve("cost per message", "ring depth", "us", "constant", sends)
    yield Curve("pull by number", "ring depth", "us", "logarithmic", pulls)


def sizes(place: Path, most: int) -> Found:
    """Bytes of a message: written once, read without a copy."""
    costs = []
    with daemon(place) as (path, _), ringcast.connect(path, start=False) as session:
        for n in [size for size in (1, 64, KIB, 16 * KIB, 256 * KIB, 4 << 20, 64 << 20, 256 << 20) if size <= most]:
            tag = session.tag(f"size/{n}", depth=2, capacity_bytes=max(4096, 2 * n + 4096))
            with tag.publisher() as pub, tag.subscribe() as sub:
                data = bytes(n)

                def once(
                    pub: ringcast.Publisher[bytes] = pub, sub: ringcast.Subscriber[bytes] = sub, data: bytes = data
                ) -> float:
                    begin = time.perf_counter()
                    pub.send(data)
                    sub.recv_nowait(copy=False)
                    return time.perf_counter() - begin

                costs.append((n, US * best(once, 20 if n < 1 << 24 else 4)))
            tag.destroy()
    yield Curve("send and receive", "bytes", "us", "linear", costs, grows_from=16 * KIB)


def _decades(most: int) -> list[int]:
    return [10**power for power in range(8) if 10**power <= most]
