"""A mesh of seven network namespaces, a daemon on each: bytes on every wire beside the plan, and a proxy's node killed.

    a --- m --- n --- b, c, d, e

The publisher is on a, subscribers are behind n: what they want is together more than the whole stream and less than
twice of it, so proxies belong on n, and when its daemon is killed on m. Bytes are those that the wires' interfaces
counted, in both directions, less what they count in the same time while nobody sends.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import ringcast
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import Topology, Wire
from ringcast.placement.compare import others
from ringcast.placement.mesh.live import live

HERE, BETWEEN, FORK = "a", "m", "n"
NODES = (HERE, BETWEEN, FORK, "b", "c", "d", "e")
TOPOLOGY = Topology(
    tuple(Wire(ends) for ends in ((HERE, BETWEEN), (BETWEEN, FORK), *((FORK, leaf) for leaf in "bcde"))),
    {BETWEEN: "router", FORK: "router"},
)  # fmt: skip
WANTED = (("b", 2), ("c", 2), ("c", 4), ("d", 3), ("e", 2))
"""Who wants every n-th message."""
TAG = "lab/live"
BYTES = 1024
HZ, SLOW_HZ = 1000, 250
"""Messages a second. With the first no scaled stream pauses for 5 ms; with the second all do, and senders then send
heartbeats too, which the plan has to know."""
SHARE = 100.0
_TICK_S = 0.002
_POLL_S = 0.02
_TAKE_S = 0.2
_KNOWN_S = 2.5
_ASK_S = 60.0
PATIENCE_S = 60.0


class Reader:
    """A subscriber that takes everything, and remembers numbers and when they came."""

    def __init__(self, sub: ringcast.Subscriber, stop: threading.Event) -> None:
        self.seen: list[tuple[int, float]] = []
        self.lost = 0
        self._sub, self._stop = sub, stop
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()

    def _take(self) -> None:
        while not self._stop.is_set():
            try:
                message = self._sub.recv(timeout=_TAKE_S)
            except TimeoutError:
                continue
            self.lost += message.lost
            self.seen.append((message.seq, time.monotonic()))

    @property
    def twice(self) -> int:
        numbers = [number for number, _ in self.seen]
        return len(numbers) - len(set(numbers))


class LiveNetwork(Opened):
    """The mesh with its publisher and its subscribers, all with at="auto". Entering raises LabError."""

    def __init__(self) -> None:
        self._stop, self._sending = threading.Event(), threading.Event()
        self._hz = HZ
        self.readers: dict[tuple[str, int], Reader] = {}
        self.mesh: MeshNodes

    def _open(self, stack: ExitStack) -> None:
        self.bed = stack.enter_context(Testbed(TOPOLOGY))
        self.mesh = stack.enter_context(MeshNodes(self.bed, NODES))
        stack.callback(self._end)
        self._publisher = self.mesh.sessions[HERE].publisher(TAG, depth=8192)
        self.mesh.wait_for_publisher(TAG)
        for node, every in WANTED:
            sub = self.mesh.sessions[node].subscribe(TAG, every=every)
            self.readers[node, every] = Reader(sub, self._stop)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def _end(self) -> None:
        self._stop.set()
        for reader in self.readers.values():
            reader.thread.join()

    def _send(self) -> None:
        payload = bytes(BYTES)
        while not self._stop.is_set():
            if not self._sending.wait(_TAKE_S):
                continue
            began, sent = time.monotonic(), 0
            while self._sending.is_set() and not self._stop.wait(_TICK_S):
                while sent < (time.monotonic() - began) * self._hz:
                    self._publisher.send(payload)
                    sent += 1

    def flow(self, on: bool, hz: int = HZ) -> None:
        """From when the daemons know the rate, which is that of the last two seconds."""
        self._sending.clear()
        if on:
            time.sleep(_TAKE_S)
            self._hz = hz
            self._sending.set()
            time.sleep(_KNOWN_S)

    def set_all(self, proxy: str) -> None:
        """For everybody, or with "auto" as the mesh thinks. Raises RingcastError."""
        session = self.mesh.sessions[HERE]
        for key in session.tags(TAG)[0].settings:
            node, _, number = key.partition("#")
            session.set_channel(TAG, node=node, subscriber=int(number or 0), at="auto")
        session.set_channel(TAG, at=proxy)

    def wait(self, condition: Callable[[], bool], problem: str) -> float:
        """How long it took. Raises LabError."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > PATIENCE_S:
                raise LabError(f"{problem} within {PATIENCE_S:g} s")
            time.sleep(_POLL_S)
        return time.monotonic() - began

    def ways(self, node: str) -> set[tuple[str, int]]:
        """The nodes that streams come from to a node, and every how many."""
        rows = self.mesh.sessions[node].channels()
        return {(row.node, row.every) for row in rows if row.direction == "in" and row.tag == TAG}

    def through(self, proxy: str) -> bool:
        """Whether all subscribers have their streams, scaled, from that node."""
        return all(
            self.ways(node) == {(proxy, every) for other, every in WANTED if other == node} for node, _ in WANTED
        )

    def bytes_per_s(self, seconds: float) -> dict[frozenset[str], float]:
        """On each wire, counted for so long."""
        before, began = self._counted(), time.monotonic()
        time.sleep(seconds)
        after, took = self._counted(), time.monotonic() - began
        return {wire: (after[wire] - before[wire]) / took for wire in after}

    def _counted(self) -> dict[frozenset[str], int]:
        """What came at both ends of each wire."""
        found: dict[frozenset[str], int] = {}
        for name in NODES:
            for line in self.bed.node(name).run(["cat", "/proc/net/dev"]).stdout.splitlines():
                interface, _, figures = line.strip().partition(":")
                if interface.startswith("to-"):
                    wire = frozenset((name, interface.removeprefix("to-")))
                    found[wire] = found.get(wire, 0) + int(figures.split()[0])
        return found

    def place(self, *options: str) -> dict[str, Any]:
        """`ringcast place --live`, as one types it. Raises LabError."""
        command = [sys.executable, "-m", "ringcast", "place", "--live", "--json", *options]
        environment = {**os.environ, **self.bed.node(HERE).environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_ASK_S, check=False)
        if done.returncode:
            raise LabError(f"'ringcast place --live' failed: {done.stderr.strip()}")
        return dict(json.loads(done.stdout))


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError, RingcastError."""
    seconds = 6.0 if quick else 20.0
    steps.expect(5)
    findings = Findings()
    with LiveNetwork() as network:
        steps.step("seven namespaces: idle traffic")
        network.set_all("publisher")
        network.flow(True)
        network.wait(lambda: network.through(HERE), "the streams did not begin")
        network.flow(False)
        idle = network.bytes_per_s(seconds)
        network.flow(True)
        rates = {}
        for place in ("publisher", "subscriber"):
            steps.step(f"seven namespaces: all at the {place}")
            network.set_all(place)
            network.wait(partial(_arrived, network, place), f"not all proxies came to the {place}")
            rates[place] = _net(network.bytes_per_s(seconds), idle)
        steps.step("seven namespaces: ringcast place --live --apply")
        network.set_all("auto")
        findings.add(_against_plan(network, seconds, idle, HZ))
        network.flow(True, SLOW_HZ)
        findings.add(_against_plan(network, seconds, idle, SLOW_HZ))
        network.flow(True)
        steps.step('seven namespaces: at="auto"')
        network.set_all("auto")
        network.wait(lambda: network.through(FORK), f"proxies did not go to {FORK} by themselves")
        rates["auto"] = _net(network.bytes_per_s(seconds), idle)
        findings.add(_totals(network, rates))
        steps.step("seven namespaces: the proxies' node is killed")
        findings.add(_killed(network))
    return findings


def _arrived(network: LiveNetwork, place: str) -> bool:
    if place == "publisher":
        return network.through(HERE)
    return all(network.ways(node) == {(HERE, 1)} for node, _ in WANTED)


def _net(rates: dict[frozenset[str], float], idle: dict[frozenset[str], float]) -> dict[frozenset[str], float]:
    return {wire: rate - idle[wire] for wire, rate in rates.items()}


def _against_plan(network: LiveNetwork, seconds: float, idle: dict[frozenset[str], float], hz: int) -> Findings:
    plan = network.place("--apply")
    proxies = {one["proxy"] for one in plan["streams"]}
    network.wait(lambda: network.through(FORK), f"streams do not come by way of {', '.join(sorted(proxies))}")
    seen = _net(network.bytes_per_s(seconds), idle)
    findings, cells, worst = Findings(), [], 0.0
    for link in plan["links"]:
        wire = frozenset((link["a"], link["b"]))
        off = seen[wire] / link["load"] - 1 if link["load"] else 0.0
        worst = max(worst, abs(off))
        cells.append([f"{link['a']}-{link['b']}", f"{link['load']:,.0f}", f"{seen[wire]:,.0f}", f"{off:+.2%}"])
    name = f"live, seven namespaces, after --apply, 1 KiB, {hz} Hz: bytes on each link off the plan, the worst link"
    findings.rows.append(at_most(name, worst * SHARE, "%", 5.0))
    heads = ["link", "plan (bytes/s)", "counted, less idle (bytes/s)", "off"]
    findings.tables.append(Table(f"Bytes on each link after `ringcast place --live --apply`, {hz} Hz", heads, cells))
    return findings


def _totals(network: LiveNetwork, rates: dict[str, dict[frozenset[str], float]]) -> Findings:
    findings = Findings()
    total = {place: sum(found.values()) for place, found in rates.items()}
    made = live(network.mesh.sessions[HERE].observe(), lambda _: True, undecided=lambda _: False)
    predicted = dict(zip(("publisher", "subscriber"), others(made.case), strict=True))
    best = network.place()["cost"]
    for place, other in predicted.items():
        saved = SHARE * (1 - total["auto"] / total[place])
        model = SHARE * (1 - best / other.plan.cost)
        name = f'live: total bytes with at="auto", less than all at the {place} (reference: what the model says)'
        findings.rows.append(at_least(name, saved, "%", 20.0 if model >= 20.0 else 0.0, model))
    cells = [[place, f"{found:,.0f}"] for place, found in total.items()]
    findings.tables.append(Table("Bytes per second on all links, less idle", ["proxies", "counted"], cells))
    return findings


def _killed(network: LiveNetwork) -> Findings:
    pid = network.mesh.pids[FORK]
    before = {key: reader.lost for key, reader in network.readers.items()}
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    took = network.wait(lambda: network.through(BETWEEN), f"streams did not go on by way of {BETWEEN}")
    time.sleep(1.0)
    longest = max(_longest_gap(reader, killed) for reader in network.readers.values())
    lost = sum(reader.lost - before[key] for key, reader in network.readers.items())
    twice = sum(reader.twice for reader in network.readers.values())
    findings = Findings()
    findings.rows += [
        at_most(
            'live: a proxy\'s node killed under at="auto": until all streams come through the next best', took, "s", 3.0
        ),
        at_most("live: the longest that a subscriber waited for a message meanwhile", longest, "s", 3.0),
        at_most("live: messages that came twice", twice, "messages", 0),
        figure("live: messages that were lost when the node was killed", lost, "messages"),
    ]  # fmt: skip
    return findings


def _longest_gap(reader: Reader, since: float) -> float:
    times = [at for _, at in reader.seen if at >= since]
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=PATIENCE_S)
