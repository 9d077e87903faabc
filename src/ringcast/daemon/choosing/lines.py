"""How fast the lines of this node are, and what leaves by them: kept until the next look, because rates change while
streams flow.

A card says how fast it is, an administrator may know better (`limits.link_rate`), and what leaves may wait in a queue
that is emptied more slowly: the smallest counts. Invariant: the kernel is asked by another thread than the daemon's
loop, since cards and queues may keep whoever asks waiting.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ringcast.daemon.placing import interfaces, queue_rates
from ringcast.daemon.streams.resolving import resolved
from ringcast.errors import RingcastError

FRESH_S, HURRIED_FRESH_S = 0.9, 0.2
"""How long what a line said is believed: a keeper asks every second, and for many tags at once. While one has just
changed, what left before that says nothing of its queue."""
CHANGING_S = 4.0
WAY_S = 30.0
"""How long it is believed by which interface a node is reached."""
FORGOTTEN_S = 300.0


class Speeds(NamedTuple):
    """Of an interface, in bytes per second; 0 is not known. `out` is how fast what is sent may leave, `into` how fast
    something may come; `leaves` is all that left lately."""

    out: float = 0.0
    into: float = 0.0
    leaves: float = 0.0


class _Look(NamedTuple):
    at_s: float
    sent: int | None
    speeds: Speeds


class Lines:
    """`host_of` knows where a node is, `most` what every line carries at most, in bytes per second; 0 for no limit."""

    def __init__(
        self, host_of: Callable[[str], Awaitable[str]], most: Callable[[], float] = lambda: 0.0,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._host_of = host_of
        self._most = most
        self._now_s = now_s
        self._ways: dict[str, tuple[float, str]] = {}
        """To nodes: since when by which interface; '' where it is not known."""
        self._looks: dict[str, _Look] = {}
        self._since_s = -math.inf
        """What is older is not believed."""

    def changed(self) -> None:
        """Somebody shaped an interface, or stopped: what was said of rates is not believed any longer."""
        self._since_s = self._now_s()

    async def to(self, node: str) -> Speeds:
        """Of the line that leads to a node."""
        name = await self.interface(node)
        return await self.of(name) if name else Speeds()

    async def interface(self, node: str) -> str:
        """By which a node is reached; '' where nobody knows."""
        now_s = self._now_s()
        since_s, name = self._ways.get(node, (now_s - WAY_S, ""))
        if now_s - since_s >= WAY_S:
            try:
                name = await asyncio.to_thread(_towards, await resolved(await self._host_of(node)))
            except (OSError, RingcastError):
                name = ""
            self._ways = {one: way for one, way in self._ways.items() if now_s - way[0] < FORGOTTEN_S}
            self._ways[node] = now_s, name
        return name

    async def of(self, name: str) -> Speeds:
        """Of an interface, as of a moment ago."""
        before = self._looks.get(name)
        fresh_s = FRESH_S if self._now_s() - self._since_s > CHANGING_S else HURRIED_FRESH_S
        if before is not None and self._now_s() - before.at_s < fresh_s and before.at_s > self._since_s:
            return before.speeds
        # What changes while it is asked for is not in the answer.
        now_s = self._now_s()
        card, queue, sent = await asyncio.to_thread(_asked, name)
        most = self._most()
        leaves = before.speeds.leaves if before is not None else 0.0
        if before is not None and before.sent is not None and sent is not None and now_s > before.at_s:
            leaves = max(sent - before.sent, 0) / (now_s - before.at_s)
        into = _smallest(card, most)
        found = Speeds(_smallest(into, queue), into, leaves)
        self._looks = {one: look for one, look in self._looks.items() if now_s - look.at_s < FORGOTTEN_S}
        self._looks[name] = _Look(now_s, sent, found)
        return found


def _towards(host: str) -> str:
    """Raises OSError."""
    return interfaces.interface_of(interfaces.local_address(host)) or ""


def _asked(name: str) -> tuple[float, float, int | None]:
    """(of the card, of its queues, bytes that left so far)."""
    return interfaces.speed_of(name), queue_rates.rate_of(name), interfaces.sent().get(name)


def _smallest(*rates: float) -> float:
    """Of those that are known."""
    return min((rate for rate in rates if rate > 0), default=0.0)
