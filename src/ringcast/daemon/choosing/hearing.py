"""What comes to this node, told to those who choose a tag's transport. Works only when it is asked.

Invariant: it speaks of channels of this node alone. Messages that a proxy left out are not lost. What tcp lost, only
the sending node's kernel knows; it is told beside what is received. So is how fast the line is by which this node
sends: a receiver sees its own interface alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from ringcast.adapt.lines import left
from ringcast.control.between.choosing import AllHeard, AskHeard, Counted, Heard
from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.choosing.lines import Lines, Speeds

HIDDEN = ("tcp",)
"""Transports whose losses are repaired where a receiver cannot count them."""
MOST_WAY_S = 30.0
TOLD_S = 30.0
"""How long what a keeper told of lines counts: it tells that every few seconds."""
_TO = " to "
SEGMENTS, RESENT = "segments", "resent"
"""What a sender's kernel counts of these."""


class Hearing:
    """`channels` has what comes and goes here, `clocks` how far other nodes are, `lines` how fast it is to them,
    `others` what else comes by the interface to a node, in bytes per second."""

    def __init__(
        self, node: str, channels: Callable[[], Iterable[ChannelStatus]],
        clocks: Callable[[], Mapping[str, ClockStatus]], lines: Lines,
        models: Callable[[], dict[str, int]],
        others: Callable[[str, Iterable[ChannelStatus]], float] = lambda node, rows: 0.0,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._node = node
        self._channels = channels
        self._clocks = clocks
        self._lines = lines
        self._models = models
        self._others = others
        self._now_s = now_s
        self._left: dict[str, tuple[float, float]] = {}

    def told(self, lines: Mapping[str, float]) -> None:
        """The keeper of these tags tells what is left for them of their senders' lines."""
        now_s = self._now_s()
        self._left = {tag: told for tag, told in self._left.items() if now_s - told[0] <= TOLD_S}
        self._left.update({tag: (now_s, line) for tag, line in lines.items()})

    def line(self, tag: str) -> float:
        """Bytes per second that are left for a tag of its senders' lines, as its keeper told it last; 0 where nobody
        did lately."""
        then_s, found = self._left.get(tag, (-TOLD_S, 0.0))
        return found if self._now_s() - then_s <= TOLD_S else 0.0

    async def heard(self, asked: AskHeard) -> AllHeard:
        tags = set(asked.tags)
        found: dict[str, list[ChannelStatus]] = defaultdict(list)
        for row in self._channels():
            if row.tag in tags:
                found[row.tag].append(row)
        return AllHeard(tags={tag: await self._of(rows) for tag, rows in found.items()}, models=self._models())

    async def _of(self, both: list[ChannelStatus]) -> Heard:
        rows = [row for row in both if row.direction == "in"]
        nodes = {row.node for row in rows}
        clocks = self._clocks()
        trips = [clocks[node].fastest_ns * 1e-9 for node in nodes if node in clocks]
        # Probes are answered at once, messages wait until a thread has a core: that is part of their way.
        trips += [2 * _way_s(row, clocks[row.node]) for row in rows if row.node in clocks]
        speeds = [
            left(speed, self._others(node, rows)) for node in nodes if (speed := (await self._lines.to(node)).into) > 0
        ]
        sent = [row for row in both if row.direction == "out"]
        outward = [line for node in {row.node for row in sent} if (line := await self._lines.to(node)).out > 0]
        slowest = min(outward, key=lambda line: line.out, default=Speeds())
        return Heard(
            node=self._node, channels=[counted(row) for row in rows], round_trip_s=max(trips, default=0.0),
            bandwidth=min(speeds, default=0.0), sent=[resent(row) for row in sent if RESENT in row.counters],
            line=slowest.out, leaves=slowest.leaves, streams=len({row.incarnation for row in sent}),
        )  # fmt: skip


def counted(row: ChannelStatus) -> Counted:
    return Counted(
        row.incarnation, row.transport, row.messages or 0, row.bytes or 0, row.lost or 0,
        # What came late by itself was not lost.
        skipped=max(row.counters.get("skipped", 0) - row.counters.get("overtaken", 0), 0),
        gaps=row.counters.get("gaps", 0), hidden=row.transport.partition(":")[0] in HIDDEN, delay_ns=_delay_ns(row),
        packets=row.counters.get("heard", 0),
    )  # fmt: skip


def resent(row: ChannelStatus) -> Counted:
    """A kernel does not say which segments were lost together."""
    again, segments = row.counters[RESENT], row.counters.get(SEGMENTS, 0)
    return Counted(row.incarnation, f"{row.transport}{_TO}{row.node}", segments, 0, 0, skipped=again, gaps=again)


def receiver_of(sent: Counted) -> str:
    """To which node a sender's counters of a stream are."""
    return sent.transport.rpartition(_TO)[2]


def _way_s(row: ChannelStatus, clock: ClockStatus) -> float:
    """How long messages take that nothing holds up, less what clocks may be wrong by; 0 where they are not known."""
    if clock.source == "unknown" or not row.messages:
        return 0.0
    return min(max(row.counters.get("least_delay_ns", 0) - clock.bound_ns, 0) * 1e-9, MOST_WAY_S)


def _delay_ns(row: ChannelStatus) -> int:
    base, beyond = row.counters.get("delay_base_ns", 0), row.counters.get("delay_sum_ns", 0)
    return max(base * (row.messages or 0) + beyond, 0)
