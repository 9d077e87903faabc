"""The network of paper 002: a publisher's node and up to five subscribers' around a switch, and runs of its test on it.

The publisher's process and daemon keep to the first core, everybody else to the last, and packets are taken in on the
receivers' core: on veth a receiver's work would otherwise run in its sender's context. Daemons and measuring processes
have real-time priority, as the paper's had a higher one than its load: what else runs on the machine runs after them.
One repetition is one drive of a number of cycles, without its warm-up.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from ringcast.lab.adamant.field.network import HUB, FieldNetwork
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.cleanup import LabError
from ringcast.transport.urgent.awake import AWAKE

BENCH = "ringcast.lab.labmap.ends:Bench"
OBSERVER = "ringcast.lab.labmap.ends:Observer"
WARM_UP = 10
REST_S = 2.0
URGENT = 5
TICK = os.sysconf("SC_CLK_TCK")
NOTHING: Mapping[str, Any] = {}


class Setting(NamedTuple):
    n: int
    period_s: float
    subscribers: int = 1
    transport: str = "nak"
    batch: bool = True
    load: str = "idle"

    @property
    def rate(self) -> float:
        return self.n / self.period_s


class Drive(NamedTuple):
    """What one repetition showed."""

    setting: Setting
    sent: dict[str, float]
    heard: list[dict[str, Any]]
    daemon_cpu_s: float
    packets: int
    wire_bytes: int
    softirq_s: float

    @property
    def lost(self) -> int:
        """State changes that were not sent within their period, or did not arrive everywhere."""
        # A full packet repeats values: it makes up for a chunk that was lost, and hides it in their number.
        missing = [max(int(self.sent["changes"]) - heard["values"], heard["lost"]) for heard in self.heard]
        return int(self.sent["lost"]) + int(max(missing, default=0))

    @property
    def wrong(self) -> int:
        return sum(heard["wrong"] for heard in self.heard)

    @property
    def achieved(self) -> float:
        """State changes per second at the slowest subscriber."""
        came = min(heard["values"] for heard in self.heard)
        return float(min(came, self.sent["changes"])) / self.sent["seconds"]

    def mean(self, what: str) -> float | None:
        values = [heard[what] for heard in self.heard if heard[what] is not None]
        return sum(values) / len(values) if values else None


class LabMapNetwork(FieldNetwork):
    """Entering raises LabError. The first node publishes."""

    def _open(self, stack: ExitStack) -> None:
        super()._open(stack)
        stack.enter_context(AWAKE.held())  # as daemons do while channels have a schedule; here all threads have one
        cores = sorted(affinity.cores())
        self.cores = (cores[0], cores[-1])
        self._urgent: set[str] = set()
        with contextlib.suppress(OSError, ProcessLookupError):
            self.mesh.pin({name: self.cores[name != self.here] for name in self.mesh.names})
        hastened = [self._hasten(self.mesh.pids[name]) for name in self.mesh.names]
        self.is_urgent = all(hastened)
        mask = f"{1 << self.cores[1]:x}"
        for name in self.mesh.names[1:]:
            # Where the kernel has no packet steering the receivers' work stays in the sender's context; it is counted.
            self.mesh.bed.node(name).run(
                ["sh", "-c", f"echo {mask} > /sys/class/net/to-{HUB}/queues/rx-0/rps_cpus"], check=False
            )

    def process(self, node: str) -> Actor:
        actor = self.actor(node)
        if node not in self._urgent:
            self._urgent.add(node)
            with contextlib.suppress(LabError):
                actor.pin(self.cores[node != self.here])
            self._hasten(actor.pid)
        return actor

    def _hasten(self, pid: int) -> bool:
        """False where the system does not let us."""
        try:
            affinity.real_time(pid, URGENT)
        except OSError:
            return False
        return True

    @contextlib.contextmanager
    def bench(self, n: int, nodes: Sequence[str], transport: str, **options: Any) -> Iterator[str]:
        """A publisher of n variables with an observer on each of these nodes; the tag. Raises ActorFailed."""
        tag, observer = self.tag(), options.pop("observer", {})
        publisher = self.process(self.here)
        publisher.ask("open", end=BENCH, name=tag, tag=tag, n=n, **options)
        try:
            self.mesh.wait_for_publisher(tag)
            for node in nodes:
                self.process(node).post("open", end=OBSERVER, name=tag, tag=tag, transport=transport, **observer)
            for node in nodes:
                self.process(node).reply(30.0)
            yield tag
        finally:
            for node in nodes:
                self.process(node).ask("close", name=tag)
            publisher.ask("close", name=tag)

    def drive(
        self, setting: Setting, cycles: int, observer: Mapping[str, Any] = NOTHING, heads_up: bool = True
    ) -> Drive:
        """One repetition, with these options of the observers. Raises ActorFailed, LabError."""
        nodes = self.there(setting.subscribers)
        with self.bench(setting.n, nodes, setting.transport, observer=dict(observer)) as tag:
            return self.repeat(tag, setting, cycles, nodes, heads_up=heads_up)

    def repeat(
        self, tag: str, setting: Setting, cycles: int, nodes: Sequence[str], share: float = 1.0, heads_up: bool = True
    ) -> Drive:  # fmt: skip
        publisher = self.process(self.here)
        how: dict[str, Any] = {
            "name": tag, "period_s": setting.period_s, "batch": setting.batch, "share": share, "heads_up": heads_up,
        }  # fmt: skip
        publisher.ask("drive", 60.0, cycles=WARM_UP, **how)
        time.sleep(0.05)
        for node in nodes:
            self.process(node).ask("begin", name=tag)
        before = self._spent()
        sent = publisher.ask("drive", 60.0 + 3 * cycles * setting.period_s, cycles=cycles, **how)
        for node in nodes:
            self.process(node).ask("seen", REST_S + 10, name=tag, wanted=int(sent["changes"]), limit_s=REST_S)
        after = self._spent()
        heard = [self.process(node).ask("report", name=tag) for node in nodes]
        spent = [b - a for a, b in zip(before, after, strict=True)]
        return Drive(setting, sent, heard, spent[0], int(spent[1]), int(spent[2]), spent[3])

    def _spent(self) -> tuple[float, float, float, float]:
        """CPU of the publisher's daemon, packets and bytes that left its node, softirq time of the machine."""
        packets, size = self.packets(self.here)
        fields = Path(f"/proc/{self.mesh.pids[self.here]}/stat").read_text().rpartition(")")[2].split()
        softirq = int(Path("/proc/stat").read_text().splitlines()[0].split()[7])
        return (int(fields[11]) + int(fields[12])) / TICK, packets, size, softirq / TICK
