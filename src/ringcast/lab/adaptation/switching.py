"""What carries a stream is changed again and again while messages flow: what is lost by that, and what comes twice.

A message may be lost only if the weaker of two transports would have lost it. So where the network loses nothing,
nothing may be missing; between transports that ask again, nothing under loss either; and between one that does and one
that does not, only what was sent while the weaker one may have carried it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import ringcast
from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import at_most, figure
from ringcast.lab.testbed.cleanup import LabError

RECEIVERS = 3
PERIOD_S = 0.002
DEPTH = 65_536
SOME = 30
"""Messages that must have come by a transport before the next change."""
PATIENCE_S = 30.0
LOSS = 0.05
WEAK = frozenset({"udp", "multicast", "multicast+parity:r=4,c=3", "multicast+lateral:r=4,c=3"})
"""Do not ask again for what is missing."""


class Course(NamedTuple):
    """Transports, one after the other. The last one is strong, or nothing is lost."""

    name: str
    loss: float
    transports: tuple[str, ...]


COURSES = (
    Course("where nothing is lost", 0.0, (
        "udp", "multicast+nak", "multicast", "tcp", "multicast+parity:r=4,c=3", "nak", "multicast+lateral:r=4,c=3",
        "multicast", "udp",
    )),
    Course("between transports that ask again, at 5 % kernel loss", LOSS, (
        "multicast+nak", "tcp", "multicast+parity+nak:r=4,c=1,flush=1s", "nak", "multicast+lateral+nak:r=4,c=3",
        "multicast+nak",
    )),
    Course("to transports that do not and back, at 5 % kernel loss", LOSS, (
        "multicast+nak", "multicast", "nak", "udp", "tcp", "multicast+parity:r=4,c=3", "multicast+nak",
    )),
)  # fmt: skip


class Carried(NamedTuple):
    """From the first message that may have been carried by a transport to the last one, both with what is beside."""

    transport: str
    first: int
    last: int


class Switched(NamedTuple):
    course: Course
    carried: list[Carried]
    sent: int
    received: list[list[int]]
    """Numbers by receiver, in the order of arrival."""

    @property
    def excusable(self) -> list[tuple[int, int]]:
        """Spans of numbers in which the network's loss may show."""
        return [(one.first, one.last) for one in self.carried if one.transport in WEAK and self.course.loss]

    def lost(self) -> int:
        """What is missing and nobody's loss but the switch's."""
        spans = self.excusable
        missing = [number for got in self.received for number in set(range(self.sent)) - set(got)]
        return sum(not any(first <= number <= last for first, last in spans) for number in missing)

    def twice(self) -> int:
        return sum(len(got) - len(set(got)) for got in self.received)


class Flow:
    """A publisher that sends until it is stopped, and what was received. Leave its `with` block to end it."""

    def __init__(self, network: FieldNetwork, transport: str) -> None:
        self._network, self._tag = network, network.tag()
        self._nodes = network.there(RECEIVERS)
        sessions = network.mesh.sessions
        self._publisher = sessions[network.here].publisher(self._tag, depth=DEPTH)
        network.mesh.wait_for_publisher(self._tag)
        self._subscribers = [sessions[node].subscribe(self._tag, transport=transport) for node in self._nodes]
        self.received: list[list[int]] = [[] for _ in self._nodes]
        self.sent = 0
        self._stopped, self._ended = threading.Event(), threading.Event()
        self._sender = threading.Thread(target=self._send)
        self._readers = [
            threading.Thread(target=self._read, args=pair)
            for pair in zip(self._subscribers, self.received, strict=True)
        ]

    def __enter__(self) -> Flow:
        self._publisher.wait_for_subscribers(len(self._nodes), timeout=PATIENCE_S)
        for thread in (self._sender, *self._readers):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._ended.set()
        for thread in (self._sender, *self._readers):
            thread.join()
        for subscriber in self._subscribers:
            subscriber.close()
        self._publisher.close()

    def _send(self) -> None:
        while not self._stopped.wait(PERIOD_S):
            self._publisher.send(b"x" * 64)
            self.sent += 1

    def _read(self, subscriber: ringcast.Subscriber, into: list[int]) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                into += [message.seq for message in subscriber.recv_many(64, timeout=0.1)]

    def change(self, transport: str) -> tuple[int, int]:
        """Have it carried so everywhere; returns how many were sent when that was asked for, and when it was so. Raises
        LabError."""
        asked_at = self.sent
        self._network.mesh.sessions[self._network.here].set_channel(self._tag, transport=transport)
        self.carried_by(transport)
        return asked_at, self.sent

    def carried_by(self, transport: str) -> None:
        def so(node: str) -> bool:
            rows = self._network.mesh.sessions[node].channels(why=False)
            mine = [row for row in rows if (row.tag, row.direction) == (self._tag, "in")]
            return [row.transport for row in mine] == [transport] and (mine[0].messages or 0) > SOME

        self._network.mesh.wait(lambda: all(map(so, self._nodes)), f"{self._tag!r} is not carried by {transport}")

    def finish(self) -> None:
        """Stop sending, and wait until the last one is everywhere. Raises LabError."""
        self._stopped.set()
        self._sender.join()
        deadline = time.monotonic() + PATIENCE_S
        while any(not got or max(got[-RECEIVERS:]) < self.sent - 1 for got in self.received):
            if time.monotonic() > deadline:
                raise LabError(f"the last message did not come within {PATIENCE_S:g} s")
            time.sleep(PERIOD_S)


def run(network: FieldNetwork, rounds: int, steps: Steps) -> list[Switched]:
    """Raises LabError."""
    steps.expect(len(COURSES))
    found = []
    for course in COURSES:
        steps.step(f"real network: switches {course.name}")
        network.lose(course.loss, network.there(RECEIVERS))
        try:
            found.append(_one(network, course, rounds))
        finally:
            network.lose(0.0, network.there(RECEIVERS))
    return found


def _one(network: FieldNetwork, course: Course, rounds: int) -> Switched:
    carried: list[Carried] = []
    first, *others = course.transports
    with Flow(network, first) as flow:
        flow.carried_by(first)
        begun = 0
        current = first
        for transport in others * rounds:
            asked_at, so_at = flow.change(transport)
            carried.append(Carried(current, begun, so_at))
            current, begun = transport, asked_at
        flow.finish()
        carried.append(Carried(current, begun, flow.sent))
        return Switched(course, carried, flow.sent, [list(got) for got in flow.received])


def conclude(switched: Sequence[Switched]) -> Findings:
    """Pure."""
    findings = Findings()
    for one in switched:
        name = f"real network, switches {one.course.name}"
        changes, receivers = len(one.carried) - 1, len(one.received)
        findings.rows += [
            at_most(f"{name}: lost that the weaker transport would have delivered", float(one.lost()), "messages", 0.0),
            at_most(f"{name}: came twice", float(one.twice()), "messages", 0.0),
            figure(f"{name}: changes, for each of {receivers} receivers", float(changes), "changes"),
            figure(f"{name}: messages sent meanwhile", float(one.sent), "messages"),
        ]
    return findings
