"""How does cost grow: with tags, publishers behind a wildcard, subscribers, clients, nodes, ring depth, message size?

Each curve says the order that is expected of it, and its row fails when its slope on log axes is steeper. Pictures go
to out/bench/scale. No peers take part.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import ringcast
from growth.curve import Curve, growth
from growth.holders import Holders, daemon, free_ports, memory_bytes
from harness.machine import cpu_ns
from harness.rows import FIELDS, Row, at_most, plain
from ringcast.lab.measuring.picture import draw
from ringcast.testing.waiting import wait_until

US = 1e6
KIB = 1024
OUT = Path("out/bench/scale")
PATIENCE_S = 300.0
Found = Iterator[Curve | Row]


def _best(seconds: Callable[[], float], tries: int = 7) -> float:
    """The lowest: what else the machine does only adds."""
    return min(seconds() for _ in range(tries))


def _per_message(pub: ringcast.Publisher[bytes], sub: ringcast.Subscriber[bytes], count: int = 2000) -> float:
    """Seconds to send and receive one, in one thread: nobody sleeps and nobody is woken."""
    begin = time.perf_counter()
    for _ in range(count):
        pub.send(b"x" * 64)
        sub.recv_nowait()
    return (time.perf_counter() - begin) / count


def _median(call: Callable[[], object], tries: int) -> float:
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def _idle_percent(pids: Sequence[int], seconds: float) -> float:
    time.sleep(1.0)
    before, begin = sum(map(cpu_ns, pids)), time.monotonic_ns()
    time.sleep(seconds)
    return 100 * (sum(map(cpu_ns, pids)) - before) / (time.monotonic_ns() - begin)


def tags(place: Path, most: int) -> Found:
    """Tags on a node, each with a publisher and a subscriber."""
    costs, makes, memory = [], [], []
    with daemon(place) as (path, pid), Holders(path, 1000) as holders, ringcast.connect(path, start=False) as session:
        probe = session.tag("probe", depth=64, capacity_bytes=64 * KIB)
        pub, sub = probe.publisher(), probe.subscribe()
        for n in _decades(most):
            already = holders.held
            took = holders.grow_to("both", n)
            makes.append((n, US * took / (n - already)))
            costs.append((n, US * _best(lambda: _per_message(pub, sub))))
            memory.append((n, _memory_of_tags(holders, pid, n)))
        yield Curve("cost per message", "tags", "us", "constant", costs)
        yield Curve("making a tag, publisher and subscriber", "tags", "us", "constant", makes, grows_from=10)
        yield at_most(
            f"cost per message, {most} tags against 1", growth(Curve("", "", "", "constant", costs)), "times", 1.1
        )
        yield at_most(f"memory per tag with a publisher and a subscriber, {most} tags", memory[-1][1], "KiB", 64.0)
        yield at_most(
            "subscribe to an existing tag, p50",
            1e3 * _median(lambda: session.subscribe("held/0").close(), 50),
            "ms",
            1.0,
        )
        yield at_most("connect, p50", 1e3 * _median(lambda: ringcast.connect(path, start=False).close(), 30), "ms", 5.0)
        yield plain(f"list one of {most} tags, p50", 1e3 * _median(lambda: session.tags("held/0"), 30), "ms")
        yield plain(f"daemon when idle, {most} tags", _idle_percent([pid], 3.0), "% of a core")


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
            costs.append((n, US * _best(lambda: _per_message(active, sub))))
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
            costs.append((n, US * _median(lambda: (pub.send(b"x" * 64), time.sleep(0.002)), 200) - 2000.0))
    yield Curve("send", "sleeping subscribers", "us", "linear", costs, grows_from=5)


def clients(place: Path, most: int) -> Found:
    """Sessions that do nothing."""
    connects = []
    with daemon(place) as (path, pid), Holders(path, 50) as holders:
        for n in [count for count in (1, 10, 50, 100, 200, 500) if count <= most]:
            already = holders.held
            connects.append((n, US * holders.grow_to("sessions", n) / (n - already)))
        idle = _idle_percent([pid, *holders.pids], 4.0)
    yield Curve("connect", "clients", "us", "constant", connects, grows_from=10)
    yield at_most(f"{most} clients and their daemon, all idle", idle, "% of a core", 0.1)


def depths(place: Path, most: int) -> Found:
    """Messages that a ring holds."""
    sends, pulls = [], []
    with daemon(place) as (path, _), ringcast.connect(path, start=False) as session:
        for n in [16, *[10**power for power in range(2, 7) if 10**power <= most]]:
            tag = session.tag(f"depth/{n}", depth=n, capacity_bytes=64 * n)
            with tag.publisher() as pub, tag.subscribe() as sub:
                for _ in range(n + n // 2):
                    pub.send(b"x" * 16)
                sends.append((n, US * _best(lambda pub=pub, sub=sub: _per_message(pub, sub, 1000))))
                history = tag.history(publisher=pub)
                oldest, newest = history.bounds()
                middle = (oldest + newest) // 2
                pulls.append((n, US * _median(lambda history=history, middle=middle: history.at(middle), 200)))
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

                costs.append((n, US * _best(once, 20 if n < 1 << 24 else 4)))
            tag.destroy()
    yield Curve("send and receive", "bytes", "us", "linear", costs, grows_from=16 * KIB)


def nodes(place: Path, most: int, tags_held: int) -> Found:
    """A node that joins a mesh whose tags it has to learn."""
    joins, held_up = [], 0.0
    for n in [count for count in (2, 5, 10, 20) if count <= most]:
        folder = place / f"mesh{n}"
        folder.mkdir()
        with ExitStack() as stack:
            addresses = [f"127.0.0.1:{port}" for port in free_ports(n)]
            sockets = [
                stack.enter_context(daemon(folder, f"n{i}", "--listen", address, *_peers(addresses[:i])))[0]
                for i, address in enumerate(addresses)
            ]
            far = stack.enter_context(ringcast.connect(sockets[-1], start=False))
            wait_until(lambda far=far, n=n: len(far.nodes()) == n, patience_s=PATIENCE_S)
            holders = stack.enter_context(Holders(sockets[0], 2500))
            holders.grow_to("tags", tags_held)
            wait_until(lambda far=far: far.status().tags >= tags_held, patience_s=PATIENCE_S)
            peers = _peers(addresses)
            begin = time.perf_counter()
            path, _ = stack.enter_context(daemon(folder, "late", "--listen", "127.0.0.1:0", *peers))
            late = stack.enter_context(ringcast.connect(path, start=False))
            while late.status().tags < tags_held:
                asked = time.perf_counter()
                far.status()
                held_up = max(held_up, time.perf_counter() - asked)
                time.sleep(0.005)
            joins.append((n, time.perf_counter() - begin))
    yield Curve("join and know all tags", "nodes", "s", "linear", joins)
    yield at_most(
        f"join a mesh of {joins[-1][0]} with {tags_held} tags, its daemon's start included", joins[-1][1], "s", 2.0
    )
    yield at_most("status request at another node meanwhile, longest", 1e3 * held_up, "ms", 50.0)


def _peers(addresses: Sequence[str]) -> list[str]:
    return [word for address in addresses for word in ("--peer", address)]


def _decades(most: int) -> list[int]:
    return [10**power for power in range(8) if 10**power <= most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument(
        "--only", default="", metavar="A,B", help="tags, publishers, subscribers, clients, depths, sizes, nodes"
    )
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    args = parser.parse_args()
    quick = args.quick
    questions: dict[str, Callable[[Path], Found]] = {
        "tags": lambda place: tags(place, 1000 if quick else 10_000),
        "publishers": lambda place: publishers(place, 100 if quick else 1000),
        "subscribers": lambda place: subscribers(place, 50 if quick else 200),
        "clients": lambda place: clients(place, 100 if quick else 500),
        "depths": lambda place: depths(place, 10_000 if quick else 1_000_000),
        "sizes": lambda place: sizes(place, 4 << 20 if quick else 256 << 20),
        "nodes": lambda place: nodes(place, 5 if quick else 20, 1000 if quick else 10_000),
    }
    asked = [name for name in args.only.split(",") if name] or list(questions)
    if unknown := set(asked) - set(questions):
        parser.error(f"no such question: {', '.join(sorted(unknown))}; there are {', '.join(questions)}")
    OUT.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number, name in enumerate(asked):
        print(f"{number + 1} of {len(asked)}: {name}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as folder:
            for found in questions[name](Path(folder)):
                if isinstance(found, Curve):
                    draw(found.picture(), OUT)
                    rows += found.rows()
                else:
                    rows.append(found)
    if args.json:
        print(json.dumps([{field: getattr(row, field) for field in FIELDS} for row in rows], indent=1))
    else:
        for row in rows:
            met = "" if row.met is None else ", met" if row.met else f", MISSED (at most {row.target})"
            print(f"{row.value if row.value is not None else '-':>12}  {row.unit:<12}{row.name}{met}")
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
