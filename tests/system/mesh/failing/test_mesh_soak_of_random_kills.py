"""Three nodes; publishers on two, subscribers on the third; daemons and publishers are killed at random, and come back.

Whatever is not received is counted, exactly. Every message says inside which publisher sent it and its number, so this
knows what was sent and what each subscription should have had:

- A message's `lost` is the number of messages, due to that subscription, between the one before it of the same
  publisher and itself; before the first one of a publisher that came after the subscription, all that are due from
  number 0 on.
- What a publisher sent after the last message that arrived is in the subscription's `lost` once the publisher has
  ended, if its end can be known: its node's daemon lived on (or the other nodes heard of the end before it died), and
  the subscription had a ring of that publisher. Otherwise nobody can tell, and it is counted or not.

Short by default. By hand, longer: `python -m pytest tests/system/mesh/failing/test_mesh_soak_of_random_kills.py
--soak-seconds 90 --soak-seed 7 -s` prints a line now and then.
"""

from __future__ import annotations

import mmap
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEADER = struct.Struct("<QQI")
SENT = struct.Struct("<QQ")
LINGERING = 8
"""Of publishers that left, a node remembers so many per tag."""

PUBLISHER = """
import mmap, struct, sys, time, ringcast
socket, tag, page, depth = sys.argv[1:3] + [sys.argv[3], int(sys.argv[4])]
with open(page, "r+b") as file:
    sent = mmap.mmap(file.fileno(), 16)
session = ringcast.connect(socket=socket, start=False)
pub = session.publisher(tag, on_slow="skip", depth=depth, capacity_bytes=1 << 18, max_wait_s=0.05)
sent[:16] = struct.pack("<QQ", pub.incarnation, 0)
print("ready", flush=True)
sys.stdin.readline()
number = 0
import select
while not select.select([sys.stdin], [], [], 0.004)[0]:
    for _ in range(4):
        length = number % 97 * 8
        body = struct.pack("<QQI", pub.incarnation, number, length) + bytes([number % 251]) * length
        assert pub.send(body) == number
        number += 1
        sent[8:16] = struct.pack("<Q", number)
pub.close()
session.close()
"""


def due_between(first: int, end: int, every: int) -> int:
    """How many multiples of `every` there are from `first` on and before `end`."""
    return max(0, -(-end // every) - -(-first // every))


class Publisher:
    """One incarnation: a process and a page in which it says how many it has sent."""

    def __init__(self, node: Any, tag: str, page: Path, depth: int) -> None:
        self.node, self.tag = node, tag
        self.ended_at: float | None = None
        self.awaited = False
        page.write_bytes(bytes(SENT.size))
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), SENT.size)
        command = [sys.executable, "-c", PUBLISHER, node.daemon.socket_path, tag, str(page), str(depth)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def incarnation(self) -> int:
        return int(SENT.unpack(self._page[: SENT.size])[0])

    @property
    def sent(self) -> int:
        """At least; one that is killed may have sent one more."""
        return int(SENT.unpack(self._page[: SENT.size])[1])

    def wait_until_ready(self) -> bool:
        assert self.process.stdout is not None
        return self.process.stdout.readline() == b"ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        else:
            self.go()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.ended_at = time.monotonic()


class Oracle:
    """What one subscription should have had, message by message."""

    def __init__(self, name: str, sub: Any, every: int = 1) -> None:
        self.name, self.sub, self.every = name, sub, every
        self.next: dict[int, int] = {}
        self.received = self.lost = 0

    def take(self, message: Any) -> None:
        incarnation, number, length = HEADER.unpack_from(message.data)
        whole = bytes([number % 251]) * length
        assert message.data[HEADER.size :] == whole, f"{self.name}: {number} of {incarnation:x} is torn"
        assert (message.publisher.incarnation, message.seq) == (incarnation, number), self.name
        assert number % self.every == 0, f"{self.name}: {number} was not asked for"
        due = self.next.get(incarnation, 0)
        assert number >= due, f"{self.name}: {number} of {incarnation:x} came after {due - 1}"
        missing = due_between(due, number, self.every)
        assert message.lost == missing, (
            f"{self.name}: before {number} of {incarnation:x} {missing} are missing (the last one was {due - 1}), "
            f"and lost says {message.lost}"
        )
        self.next[incarnation] = number + 1
        self.received += 1
        self.lost += message.lost

    def drain(self) -> int:
        before = self.received
        try:
            for message in self.sub.recv_many(512, timeout=0.001):
                self.take(message)
        except TimeoutError:
            pass
        return self.received - before

    def tails(self, publishers: list[Publisher], sure: Callable[[Publisher], bool]) -> tuple[int, int]:
        """The least and the most that may be counted at the ends of streams."""
        least = most = 0
        for publisher in publishers:
            if publisher.ended_at is None or not matches_tag(self.sub.pattern, publisher.tag):
                continue
            due = self.next.get(publisher.incarnation, 0)
            if publisher.incarnation in self.next and sure(publisher):
                least += due_between(due, publisher.sent, self.every)
            most += due_between(due, publisher.sent + 1, self.every)
        return least, most


def matches_tag(pattern: str, tag: str) -> bool:
    return pattern == tag or pattern.endswith("**")


class Soak:
    """Kills and restarts in threads of their own; the test's thread receives all the while."""

    def __init__(self, nodes: list[Any], folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes = nodes
        self.folder = folder
        self.publishers: list[Publisher] = []
        self.living: dict[tuple[str, str], Publisher] = {}
        self.killed_at: dict[str, float] = {}
        self.kills = {"daemon": 0, "publisher": 0}
        self._failures: list[BaseException] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, node: Any, tag: str) -> Publisher:
        page = self.folder / f"sent{len(self.publishers)}"
        publisher = Publisher(node, tag, page, depth=128)
        self.publishers.append(publisher)
        self.living[node.name, tag] = publisher
        return publisher

    def run(self, until: float) -> threading.Thread:
        self._thread = threading.Thread(target=self._run, args=(until,))
        self._thread.start()
        return self._thread

    def check(self) -> None:
        if self._failures:
            raise self._failures[0]

    def _run(self, until: float) -> None:
        try:
            while time.monotonic() < until and not self._stop.wait(self.random.uniform(0.05, 0.6)):
                if self.random.random() < 0.5:
                    self._exchange_publisher()
                else:
                    self._restart_daemon()
        except BaseException as exc:
            self._failures.append(exc)

    def _restart_daemon(self) -> None:
        node = self.random.choice(self.nodes)
        node.kill()
        self.killed_at[node.name] = time.monotonic()
        self.kills["daemon"] += 1
        time.sleep(self.random.choice([0.0, 0.1, 0.5, 1.0]))
        node.restart()

    def _exchange_publisher(self) -> None:
        key = self.random.choice(sorted(self.living))
        publisher = self.living.pop(key)
        publisher.end(kill=self.random.random() < 0.7)
        self.kills["publisher"] += 1
        time.sleep(self.random.uniform(0.0, 0.2))
        successor = self.start(publisher.node, publisher.tag)
        if successor.wait_until_ready():
            successor.go()

    def sure(self, publisher: Publisher) -> bool:
        """Whether its end is known to its node, and will be known to the others."""
        assert publisher.ended_at is not None
        of_tag = [p for p in self.publishers if (p.node, p.tag) == (publisher.node, publisher.tag) and p.ended_at]
        survived = self.killed_at.get(publisher.node.name, 0.0) < publisher.ended_at
        return survived and publisher in of_tag[-LINGERING:]

    def close(self) -> None:
        """A daemon that was being restarted would outlive a test that failed meanwhile."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for publisher in self.living.values():
            publisher.end(kill=True)


@pytest.fixture
def soak_options(request: pytest.FixtureRequest) -> tuple[float, int]:
    return request.config.getoption("--soak-seconds"), request.config.getoption("--soak-seed")


def test_every_gap_is_told(make_mesh, eventually, tmp_path, soak_options):
    seconds, seed = soak_options
    a, b, c = make_mesh(3)
    soak = Soak([a, b, c], tmp_path, seed)
    try:
        first = [soak.start(node, tag) for node in (a, b) for tag in ("soak/plain", "soak/sure")]
        assert all(publisher.wait_until_ready() for publisher in first)
        eventually(lambda: c.knows("soak/plain", 2) and c.knows("soak/sure", 2))
        subscribe = c.session.subscribe
        oracles = [
            Oracle("nak", subscribe("soak/plain")),
            Oracle("udp", subscribe("soak/plain", transport="udp")),
            Oracle("every third", subscribe("soak/plain", every=3), 3),
            Oracle("every fourth, scaled here", subscribe("soak/plain", every=4, at="subscriber"), 4),
            Oracle("wildcard", subscribe("soak/**")),
            Oracle("reliable", subscribe("soak/sure", reliable=True)),
            Oracle("reliable by nak", subscribe("soak/sure", reliable=True, transport="nak")),
        ]
        for publisher in first:
            publisher.go()
        started = time.monotonic()
        kills = soak.run(started + seconds)
        told = started
        while kills.is_alive():
            for oracle in oracles:
                oracle.drain()
            if time.monotonic() > told + 5:
                told = time.monotonic()
                received = sum(oracle.received for oracle in oracles)
                lost = sum(oracle.sub.lost for oracle in oracles)
                print(f"soak: {told - started:.0f} s, {soak.kills}, {received} received, {lost} lost and told")
        kills.join()
        soak.check()

        # Everybody is here again, and then every stream comes to its end.
        eventually(lambda: all(node.here() == {"a", "b", "c"} for node in (a, b, c)))
        for publisher in list(soak.living.values()):
            publisher.end(kill=False)
        soak.living.clear()

        def settled() -> bool:
            quiet = not sum(oracle.drain() for oracle in oracles)
            bounds = [oracle.tails(soak.publishers, soak.sure) for oracle in oracles]
            told = [oracle.sub.lost - oracle.lost for oracle in oracles]
            return quiet and all(least <= count for (least, _), count in zip(bounds, told, strict=True))

        deadline = time.monotonic() + 30
        while not settled() and time.monotonic() < deadline:
            time.sleep(0.01)
        for oracle in oracles:
            least, most = oracle.tails(soak.publishers, soak.sure)
            told_at_ends = oracle.sub.lost - oracle.lost
            assert least <= told_at_ends <= most, f"{oracle.name}: {told_at_ends} told at the ends of streams"
        assert all(oracle.received for oracle in oracles)
        assert min(soak.kills.values()) > 0
    finally:
        soak.close()


def test_due_between() -> None:
    numbers = range(30)
    for every in (1, 2, 3, 7):
        for begin in numbers:
            for end in numbers:
                expected = sum(number % every == 0 for number in range(begin, end))
                assert due_between(begin, end, every) == expected


def test_an_oracle_that_is_lied_to() -> None:
    """What the soak relies on: a wrong count, a repetition and a torn message do not pass."""

    class Told:
        def __init__(self, number: int, lost: int, data: bytes | None = None) -> None:
            body = HEADER.pack(7, number, 8) + bytes([number % 251]) * 8
            self.seq, self.lost, self.data = number, lost, body if data is None else data
            self.publisher = type("Info", (), {"incarnation": 7})

    oracle = Oracle("x", None)
    oracle.take(Told(0, 0))
    oracle.take(Told(5, 4))
    for wrong in (Told(9, 0), Told(9, 4), Told(5, 0), Told(6, 0, HEADER.pack(7, 6, 8) + bytes(8))):
        with pytest.raises(AssertionError):
            oracle.take(wrong)
