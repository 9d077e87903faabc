"""What seals cost: round trips and throughput between two nodes with identities, beside two without.

Both meshes are up all the time and are measured in turn, so that both see the same machine. The other end is a process:
`python -m ringcast.lab.security.costs echo SOCKET TAG TRANSPORT`, or `pump SOCKET TAG MESSAGES`, which pumps so many
for every message that comes on TAG/go.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ringcast
from ringcast.lab.measuring.report import Analysed
from ringcast.lab.measuring.round_trip import Echo, Ping
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.security.cells import Compared, told, values
from ringcast.lab.security.meshes import Mesh
from ringcast.record.figures import Measured

SIZE, LARGE = 64, 1024
WARM_UP = 200
MESHES = ("plain", "sealed")
AGAINST = "sealed against not"
STREAM = "1 KiB by tcp"
MOST_TIMES = {"udp": 1.25, "tcp": 1.3}
"""What a sealed round trip may take, by transport, in times a plain one."""
LEAST_TIMES = 0.7
"""What a sealed stream has of a plain one's messages a second."""
WAIT_S = 30.0
DEPTH: dict[str, Any] = {"depth": 4096, "capacity_bytes": 8 << 20, "max_wait_s": 10.0}


def round_trips(meshes: dict[str, Mesh], transport: str, rounds: int, count: int) -> dict[str, list[float]]:
    """{mesh: the median of each round, in seconds}"""
    found: dict[str, list[float]] = {name: [] for name in meshes}
    tag = f"cost/{transport}"
    with _ends(meshes, "echo", tag, transport), _sessions(meshes) as sessions:
        pings = {name: Ping(session, tag, f"{tag}/back", transport) for name, session in sessions.items()}
        for ping in pings.values():
            ping.match(1)
            ping.ping(WARM_UP, SIZE)
        for _ in range(rounds):
            for name, ping in pings.items():
                found[name].append(statistics.median(ping.ping(count, SIZE)) * 1e-9)
        for ping in pings.values():
            ping.close()
    return found


def throughput(meshes: dict[str, Mesh], rounds: int, count: int) -> dict[str, list[float]]:
    """{mesh: messages of a kibibyte a second in each round}, by tcp, from the word to begin until all are received."""
    found: dict[str, list[float]] = {name: [] for name in meshes}
    tag = "cost/stream"
    with _ends(meshes, "pump", tag, str(count)), _sessions(meshes) as sessions:
        ends = {}
        for name, session in sessions.items():
            subscriber = session.tag(tag, **DEPTH).subscribe(reliable=True, transport="tcp")
            go = session.tag(f"{tag}/go").publisher()
            go.wait_for_subscribers(1, timeout=WAIT_S)
            ends[name] = subscriber, go
        for _ in range(rounds):
            for name, (subscriber, go) in ends.items():
                begin = time.perf_counter()
                go.send(b"")
                last = subscriber.recv(WAIT_S).seq + count - 1
                while subscriber.recv(WAIT_S).seq < last:
                    pass
                found[name].append(count / (time.perf_counter() - begin))
    return found


def measured(what: str, found: Mapping[str, Sequence[float]], metric: str, unit: str) -> Iterator[Measured]:
    """A repetition is a round. What seals cost is compared within it: neighbours in time see the same machine."""
    for name, samples in found.items():
        yield from values(Compared(what, name), metric, [[one] for one in samples], unit)
    ratios = [[sealed / plain] for sealed, plain in zip(found["sealed"], found["plain"], strict=True)]
    yield from values(Compared(what, AGAINST), "times", ratios, "times")


def judged(analysed: Analysed) -> list[Row]:
    """Of ratios the median of the rounds."""
    rows = []
    times, taken, rates = (told(analysed, metric, Compared) for metric in ("times", "taken", "rate"))
    for transport, most in MOST_TIMES.items():
        name, what = f"round trip of {SIZE} B by {transport}", f"round trip by {transport}"
        if ratio := times.get(Compared(what, AGAINST)):
            rows.append(at_most(f"{name}, {AGAINST}", ratio["p50"], "times", most))
        for mesh in MESHES:
            if one := taken.get(Compared(what, mesh)):
                rows.append(figure(f"{name}, {mesh}", one["least"] * 1e6, "us"))
    name = "messages of 1 KiB a second by tcp"
    if ratio := times.get(Compared(STREAM, AGAINST)):
        rows.append(at_least(f"{name}, {AGAINST}", ratio["p50"], "times", LEAST_TIMES))
    for mesh in MESHES:
        if one := rates.get(Compared(STREAM, mesh)):
            rows.append(figure(f"{name}, {mesh}", one["most"], "messages/s"))
    return rows


@contextmanager
def _sessions(meshes: dict[str, Mesh]) -> Iterator[dict[str, ringcast.Session]]:
    sessions = {name: ringcast.connect(socket=mesh.a, start=False) for name, mesh in meshes.items()}
    try:
        yield sessions
    finally:
        for session in sessions.values():
            session.close()


@contextmanager
def _ends(meshes: dict[str, Mesh], what: str, *words: str) -> Iterator[None]:
    command = [sys.executable, "-m", "ringcast.lab.security.costs", what]
    ends = [subprocess.Popen([*command, mesh.b, *words], stdin=subprocess.PIPE) for mesh in meshes.values()]
    try:
        yield
    finally:
        for end in ends:
            assert end.stdin is not None
            end.stdin.close()
            end.wait()


def echo(path: str, tag: str, transport: str) -> None:
    with ringcast.connect(socket=path, start=False) as session:
        answering = Echo(session, tag, f"{tag}/back", transport=transport)
        sys.stdin.read()
        answering.close()


def pump(path: str, tag: str, count: str) -> None:
    with ringcast.connect(socket=path, start=False) as session:
        publisher = session.tag(tag, **DEPTH).publisher()
        go = session.tag(f"{tag}/go").subscribe()
        payload = bytes(LARGE)
        while True:
            try:
                go.recv(1.0)
            except TimeoutError:
                if _ended():
                    return
                continue
            for _ in range(int(count)):
                publisher.send(payload)


def _ended() -> bool:
    import select

    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    {"echo": echo, "pump": pump}[sys.argv[1]](*sys.argv[2:])
