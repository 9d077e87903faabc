"""What this node tells those who place proxies: how fast its publishers send, how far others are, its CPU.

Works only when it is asked. Invariant: a report speaks of this node alone.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable

from ringcast.control import service
from ringcast.control.placing import AskReport, Report, ScaledSize, TagRate
from ringcast.control.status import ChannelStatus
from ringcast.daemon.clients.local import Local
from ringcast.daemon.placing.ways import Ways
from ringcast.daemon.rings.pacing import measured_hz
from ringcast.daemon.rings.ring import Ring

SILENT_NS = 10_000_000_000
"""Who has sent nothing for so long, and for ten of its periods, sends nothing now."""
PERIODS = 10


class Reporting:
    """`nodes` names the others, `channels` has what comes here, `now_ns` is the clock of messages."""

    def __init__(
        self, local: Local, ways: Ways, nodes: Callable[[], list[str]], channels: Callable[[], Iterable[ChannelStatus]],
        now_ns: Callable[[], int],
    ) -> None:  # fmt: skip
        self.cpu_share: float | None = None
        """What streams may take here, in cores; None is unlimited."""
        self._local = local
        self._ways = ways
        self._nodes = nodes
        self._channels = channels
        self._now_ns = now_ns

    async def serve(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskReport)
        return service.encode(await self.report(ways=asked.ways))

    async def report(self, *, ways: bool = True) -> Report:
        # Of two nodes the one whose name sorts first measures: a way is as far in both directions.
        me = self._local.table.node
        found = await self._ways.to([name for name in self._nodes() if name > me]) if ways else []
        return Report(
            node=me, cpu_share=self.cpu_share, load=os.getloadavg()[0] / (os.cpu_count() or 1), rates=self._rates(),
            sizes=self._sizes(), ways=found,
        )  # fmt: skip

    def _rates(self) -> list[TagRate]:
        by_tag: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for ring in self._local.rings:
            if ring.alive and not ring.foreign and ring.row.owner == self._local.table.node and ring.size is None:
                hz, size = self._rate(ring)
                if hz > 0:
                    by_tag[ring.tag].append((hz, size))
        return [
            TagRate(tag, sum(hz for hz, _ in seen), sum(hz * size for hz, size in seen) / sum(hz for hz, _ in seen))
            for tag, seen in by_tag.items()
            if not tag.startswith("@")
        ]

    def _rate(self, ring: Ring) -> tuple[float, float]:
        counters = ring.monitor.counters()
        sent = counters.get("sent", 0)
        hz = measured_hz(ring) if sent > 1 else 0.0
        silent_ns = self._now_ns() - ring.monitor.last_sent_ns()
        if hz <= 0 or silent_ns > max(SILENT_NS, PERIODS * 1e9 / hz):
            return 0.0, 0.0
        return hz, counters.get("bytes", 0) / sent

    def _sizes(self) -> list[ScaledSize]:
        return [
            ScaledSize(row.tag, row.size, row.bytes / row.messages)
            for row in self._channels()
            if row.direction == "in" and row.size is not None and row.messages and row.bytes
        ]
