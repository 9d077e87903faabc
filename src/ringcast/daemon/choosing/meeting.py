"""What each channel that comes to this node met in the last seconds: loss before repair, bursts, rate, what is left.

Counters are looked at once a second, when telemetry is (`look`); whoever lists channels in between gets what was known
then (`known`). Invariant: nothing is asked of other nodes, and only where those are whose streams come is looked up,
once: a node that is not where it says must not hold up telemetry. What the keeper of a tag told of its senders' lines
counts where that is less than what is left of this node's own.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from ringcast.adapt.features import HEADS_BYTES
from ringcast.adapt.looks import met
from ringcast.control.between.choosing import Counted
from ringcast.control.status import ChannelEnvironment, ChannelStatus, ClockStatus
from ringcast.daemon.choosing.hearing import counted
from ringcast.daemon.choosing.lines import Lines
from ringcast.daemon.placing import interfaces

LOOKS = 10
_STAT = Path("/proc/stat")
_Key = tuple[int, str, int, tuple[int, int] | None, float, bool]


class Meeting:
    """`receivers` counts the nodes that subscribe to a tag, `clocks` says how far others are, `lines` how fast it is to
    them; `line` is what is left for a tag of its senders' lines, in bytes per second, 0 where nobody told."""

    def __init__(
        self, receivers: Callable[[str], int], clocks: Callable[[], Mapping[str, ClockStatus]], lines: Lines,
        line: Callable[[str], float] = lambda tag: 0.0, now_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._receivers = receivers
        self._clocks = clocks
        self._lines = lines
        self._line = line
        self._now_s = now_s
        self._looks: dict[_Key, deque[tuple[float, Counted]]] = {}
        self._known: dict[_Key, ChannelEnvironment] = {}
        self._seen: set[_Key] = set()
        self._senders: set[str] = set()
        self._interfaces: dict[str, str] = {}
        """To nodes whose streams come; '' where it is not known."""
        self._left: dict[str, float] = {}
        self._came: dict[str, float] = {}
        """Bytes per second by interface."""
        self._passed: tuple[float, dict[str, int]] = (0.0, {})
        self._ticks = (0, 0)
        self._cpu_left: float | None = None
        self._round_trips: Mapping[str, ClockStatus] = {}

    async def begin(self) -> None:
        """Before a round of looks: what all channels have in common."""
        for gone in self._looks.keys() - self._seen:
            del self._looks[gone]
            self._known.pop(gone, None)
        self._seen = set()
        self._round_trips = self._clocks()
        for node in self._interfaces.keys() - self._round_trips.keys():
            del self._interfaces[node]
        for node in (self._senders & self._round_trips.keys()) - self._interfaces.keys():
            self._interfaces[node] = await self._lines.interface(node)
        self._senders = set()
        await self._look_at_interfaces()
        self._look_at_cores()

    async def _look_at_interfaces(self) -> None:
        now_s, (then_s, before) = self._now_s(), self._passed
        passed = interfaces.received()
        self._passed = now_s, passed
        self._left, self._came = {}, {}
        for name in set(self._interfaces.values()) & passed.keys() & before.keys():
            speed, elapsed_s = (await self._lines.of(name)).into, now_s - then_s
            if speed > 0 and elapsed_s > 0:
                self._came[name] = max(passed[name] - before[name], 0) / elapsed_s
                self._left[name] = max(speed - self._came[name], 0.0)

    def _look_at_cores(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            idle, total = core_ticks(_STAT.read_text())
            elapsed = total - self._ticks[1]
            self._cpu_left = 100 * (idle - self._ticks[0]) / elapsed if elapsed > 0 and self._ticks[1] else None
            self._ticks = idle, total

    def look(self, rows: Iterable[ChannelStatus]) -> Iterable[ChannelStatus]:
        """The same rows, one by one, with what they met until now."""
        for row in rows:
            if row.direction == "in":
                key = _key(row)
                self._seen.add(key)
                self._senders.add(row.node)
                looks = self._looks.setdefault(key, deque(maxlen=LOOKS + 1))
                now = counted(row)
                if looks and looks[-1][1].messages > now.messages:  # opened again
                    looks.clear()
                looks.append((self._now_s(), now))
                self._measure(key, row, looks)
            yield self.known(row)

    def others(self, node: str, rows: Iterable[ChannelStatus]) -> float:
        """Bytes per second that came by the interface to a node, besides these channels'."""
        known = [self._known[key] for row in rows if (key := _key(row)) in self._known]
        own = sum(one.rate_hz * (one.payload_bytes + HEADS_BYTES) for one in known)
        return max(self._came.get(self._interfaces.get(node, ""), 0.0) - own, 0.0)

    def known(self, row: ChannelStatus) -> ChannelStatus:
        found = self._known.get(_key(row)) if row.direction == "in" else None
        return msgspec.structs.replace(row, environment=found) if found is not None else row

    def _measure(self, key: _Key, row: ChannelStatus, looks: deque[tuple[float, Counted]]) -> None:
        (first_s, before), (last_s, after) = looks[0], looks[-1]
        found = met(last_s - first_s, before, after)
        if found is None:
            self._known.pop(key, None)
            return
        clock, left = self._round_trips.get(row.node), self._left.get(self._interfaces.get(row.node, ""))
        if line := self._line(row.tag):
            beside = max(line - found.rate_hz * (found.payload_bytes + HEADS_BYTES), 0.0)
            left = beside if left is None else min(left, beside)
        self._known[key] = ChannelEnvironment(
            seconds=last_s - first_s, receivers=self._receivers(row.tag), loss_percent=found.loss_percent,
            burst=found.burst, rate_hz=found.rate_hz, payload_bytes=found.payload_bytes,
            round_trip_us=clock.fastest_ns / 1e3 if clock is not None and clock.fastest_ns else None,
            bandwidth_left_mbit=8e-6 * left if left is not None else None, cpu_left_percent=self._cpu_left,
        )  # fmt: skip


def _key(row: ChannelStatus) -> _Key:
    return row.incarnation, row.transport, row.every, row.size, row.rate_hz, row.reliable


def core_ticks(stat: str) -> tuple[int, int]:
    """(idle, all) of all cores together, from /proc/stat. Raises ValueError. Pure."""
    words = stat.partition("\n")[0].split()
    if words[:1] != ["cpu"] or len(words) < 6:
        raise ValueError("no line of all cores")
    ticks = list(map(int, words[1:9]))
    return ticks[3] + ticks[4], sum(ticks)
