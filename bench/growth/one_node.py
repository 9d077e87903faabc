"""How cost grows on one node: with tags, publishers behind a wildcard, subscribers of a tag, client processes."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import ringcast
from growth.curve import Curves
from growth.holders import Holders, daemon
from growth.probes import (
    IDLE,
    KIB,
    PATIENCE_S,
    US,
    Found,
    OwnMemory,
    Probe,
    best,
    idle_percent,
    median_of,
    memory_bytes,
    per_message,
)
from harness.rows import at_most, note, plain
from ringcast.daemon.rings.kept_files import without_descriptors
from ringcast.testing.waiting import wait_until

FILES_BESIDE = 300
MANY = 100
"""So many things take more memory than a process has in reserve."""


def _files_per_tag() -> int:
    """What a daemon holds open of a tag with one publisher: its fan-out socket, and where the kernel cannot keep files
    otherwise, the ring and its bell."""
    return 1 if without_descriptors() else 3


def tags(place: Path, most: int) -> Found:
    """Tags on a node, each with a publisher and a subscriber."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    allowed = (limit - FILES_BESIDE) // _files_per_tag()
    if allowed < most:
        yield note(
            f"{most} tags need {most * _files_per_tag() + FILES_BESIDE} open files of the daemon, and this machine "
            f"allows {limit}: measured with {allowed} (raise it with 'ulimit -Hn' as root, limits.conf or LimitNOFILE=)"
        )
        most = allowed
    curves = Curves("tags")
    with daemon(place) as (path, pid), Holders(path, 1000) as holders, ringcast.connect(path, start=False) as session:
        probe = Probe(path, session)
        for n in sorted({*_decades(most), most}):
            already = holders.held
            took = holders.grow_to("both", n)
            each = US * took / (n - already)
            curves.add(n, "making a tag, publisher and subscriber", each, "us", "constant", grows_from=10)
            probe.measure(curves, n)
            curves.add(n, "memory per tag", _memory_of_tags(holders, pid, n), "KiB", "constant")
        open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        against = _against_one(place, probe)
        idle = idle_percent([pid], 3.0)
    yield from curves
    yield at_most(f"cost per message, {most} tags against 1", against, "times", 1.1)
    memory = curves.last("memory per tag")
    yield at_most(f"memory per tag with a publisher and a subscriber, {most} tags", memory, "KiB", 64.0)
    yield at_most(f"subscribe to a tag, p50, {most} tags", curves.last("subscribe to a tag") / 1e3, "ms", 1.0)
    yield at_most(f"connect, p50, {most} tags", curves.last("connect") / 1e3, "ms", 5.0)
    yield at_most(f"daemon when idle, {most} tags", idle, "% of a core", IDLE)
    yield at_most(f"open files of the daemon, {most} tags", open_files, "files", limit)


def _against_one(place: Path, probe: Probe) -> float:
    """The cost per message beside that with a daemon that has one tag, taken in turns: cores change their speed."""
    with daemon(place, "bare") as (path, _), ringcast.connect(path, start=False) as session:
        bare = Probe(path, session)
        pairs = [(probe.message(), bare.message()) for _ in range(25)]
    return min(full for full, _ in pairs) / min(alone for _, alone in pairs)


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
    curves = Curves("publishers behind a wildcard")
    with daemon(place) as (path, pid), Holders(path, 1000) as holders, ringcast.connect(path, start=False) as session:
        probe = Probe(path, session)
        active = session.tag("wild/active", depth=4096, capacity_bytes=1 << 20).publisher()
        sub = session.subscribe("wild/*")
        memory = OwnMemory(pid)
        for n in _decades(most):
            already = holders.held
            took = holders.grow_to("publishers", n - 1, name="wild")
            wait_until(lambda n=n: sub.stats().rings == n, patience_s=PATIENCE_S)
            received = US * best(lambda: per_message(active, sub))
            curves.add(n, "receive one of an active publisher", received, "us", "constant")
            if holders.held > already:
                each = US * took / (holders.held - already)
                curves.add(n, "making a publisher", each, "us", "constant", grows_from=10)
                curves.add(n, "daemon's memory per publisher", memory.each(n), "KiB", "constant", grows_from=MANY)
            probe.measure(curves, n, message=False)
            whole = median_of(lambda: session.subscribe("wild/*"), 5, lambda sub: sub.close())
            curves.add(n, "subscribe to all of them", US * whole, "us", "linear", grows_from=10)
            listed = median_of(lambda: session.tags("wild/*"), 11)
            curves.add(n, "list all of them", US * listed, "us", "linear", grows_from=10)
        idle = idle_percent([pid], 3.0)
    yield from curves
    growth = curves.growth("receive one of an active publisher")
    yield at_most(f"receive cost, {most} publishers behind a wildcard against 1", growth, "times", 2.0)
    yield at_most(f"daemon when idle, {most} publishers behind a wildcard", idle, "% of a core", IDLE)


def subscribers(place: Path, most: int) -> Found:
    """Subscribers of one tag, all asleep: each is woken by every message."""
    curves = Curves("sleeping subscribers of a tag")
    with (
        daemon(place) as (path, pid), Holders(path, 50) as holders, Holders(path, 50) as others,
        ringcast.connect(path, start=False) as session,
    ):  # fmt: skip
        probe = Probe(path, session)
        tag = session.tag("one", depth=4096)
        pub = tag.publisher()
        others.grow_to("sleepers", MANY, name="others")  # what they take leaves less in reserve
        memory = OwnMemory(pid)
        for n in [count for count in (1, 2, 5, 10, 20, 50, 100, 200) if count <= most]:
            already = holders.held
            took = holders.grow_to("sleepers", n, name="one")
            each = US * took / (n - already)
            curves.add(n, "making a subscriber with a thread", each, "us", "constant", grows_from=10)
            pub.wait_for_subscribers(n, 30.0)
            sent = median_of(lambda: pub.send(b"x" * 64), 200, lambda _: time.sleep(0.002))
            curves.add(n, "send", US * sent, "us", "linear", grows_from=5)
            probe.measure(curves, n, message=False)
            listed = median_of(tag.subscribers, 21)
            curves.add(n, "list all of them", US * listed, "us", "linear", grows_from=5)
            curves.add(n, "daemon's memory per subscriber", memory.each(n), "KiB", "constant", grows_from=20)
        idle = idle_percent([pid, *holders.pids], 3.0)
    yield from curves
    yield at_most(f"{most} sleeping subscribers and their daemon, idle", idle, "% of a core", IDLE)


def clients(place: Path, most: int) -> Found:
    """Processes with a session each that do nothing."""
    curves = Curves("client processes")
    with daemon(place) as (path, pid), Holders(path, most) as holders, ringcast.connect(path, start=False) as session:
        probe = Probe(path, session)
        memory = OwnMemory(pid)
        for n in [count for count in (1, 10, 50, 100, 200, 500) if count <= most]:
            already = holders.held
            each = US * holders.grow_to("processes", n) / (n - already)
            curves.add(n, "connect, first of its process, mean", each, "us", "constant", grows_from=10)
            probe.measure(curves, n)
            curves.add(n, "daemon's memory per client", memory.each(n), "KiB", "constant", grows_from=MANY)
        everybody = holders.family()
        idle = idle_percent([pid, *everybody], 4.0)
        sample = statistics.mean(map(memory_bytes, everybody[-20:])) / KIB
    yield from curves
    yield at_most(f"{most} client processes and their daemon, all idle", idle, "% of a core", IDLE)
    yield plain("memory of a client process, forked, with its session", sample, "KiB")


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
    yield at_most("daemon beside a stuck reliable reader, idle", idle, "% of a core", IDLE)


def _decades(most: int) -> list[int]:
    return [10**power for power in range(8) if 10**power <= most]
