"""The clocks of the mesh as this node knows them: who is probed when, and what is told of it.

Each node is asked over the mesh where its probes go; then one goes every period, or seldom while no messages come from
that node and nobody asks about its clock: a mesh that does nothing costs next to nothing, however many nodes it has.
Invariants: no more than `MOST_PER_S` probes leave; a node whose clock cannot be had keeps nobody waiting for long;
one-way traffic feeds nothing here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from ringcast import _core
from ringcast.clock.exchange import Exchange
from ringcast.clock.own import OwnClock
from ringcast.clock.probe import PERIOD_S
from ringcast.control import service
from ringcast.control.service import ClockOpened, OpenClock
from ringcast.control.status import ClockEvent, ClockStatus
from ringcast.daemon.background import Background
from ringcast.daemon.clocks.pace import Pace
from ringcast.daemon.clocks.peer import PeerClock
from ringcast.daemon.clocks.probing import Probing, Secret, look
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.streams.resolving import resolved
from ringcast.errors import BadMessage, QosMismatch, RingcastError

logger = logging.getLogger("ringcast.daemon")

LOOK_S = 10.0
"""How often it is looked from whom messages come."""
MOST_PER_S = 200
EAGER = 64
"""In a larger mesh only nodes with which this one exchanges messages are probed."""
MOST_GONE = 256
PATIENCE_S = 1.0
REQUEST_TIMEOUT_S = 2.0
LONGEST_RETRY_S = 30.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_APART = ("RINGCAST_CLOCK_AHEAD_S", "RINGCAST_CLOCK_DRIFT", "RINGCAST_CLOCK_STEP")


def own_clock_id() -> str:
    """Processes with the same have the same clock; '' when that cannot be known."""
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        return ""
    apart = [os.environ.get(name, "") for name in _APART]
    return f"{boot} {' '.join(apart)}" if _core.CLOCK_APART else boot


class _Probed:
    """A node that is probed, and where."""

    def __init__(self, clock: PeerClock, pace: Pace) -> None:
        self.clock = clock
        self.pace = pace
        self.host = ""
        self.port = 0
        self.secret = Secret(0, b"")
        self.settled = asyncio.Event()
        self.opening: asyncio.Task[None] | None = None


class Clocks:
    """`node` is this one; `host_of` knows where others are; `told` hears of steps and violations; `senders` are the
    nodes from which messages come."""

    def __init__(
        self, node: str, mesh: ServingMesh, host: str, host_of: Callable[[str], Awaitable[str]], background: Background,
        told: Callable[[ClockEvent], None], *, period_s: float = PERIOD_S, common: bool = False,
        senders: Callable[[], Iterable[str]] = tuple,
    ) -> None:  # fmt: skip
        self._node = node
        self._mesh = mesh
        self._host = host
        self._host_of = host_of
        self._background = background
        self._told = told
        self._period_s = period_s
        self._common = common
        self._senders = senders
        self._look_s = 0.0
        self._nodes: dict[str, _Probed] = {}
        self._gone: dict[str, PeerClock] = {}
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._own = OwnClock(look())
        self._id = own_clock_id()
        self._probing: Probing | None = None
        mesh.serve(service.CLOCK, self._opened)

    def start(self) -> None:
        """Raises OSError."""
        self._probing = Probing(self._host, self._exchanged)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for probed in self._nodes.values():
            if probed.opening is not None:
                probed.opening.cancel()
        if self._probing is not None:
            self._probing.close()
            self._probing = None

    # ------------------------------------------------------------------ who is there

    def node_came(self, node: str) -> None:
        if len(self._nodes) < EAGER and node != self._node:
            self._probed(node)

    def node_gone(self, node: str) -> None:
        if (probed := self._nodes.pop(node, None)) is None:
            return
        if probed.opening is not None:
            probed.opening.cancel()
        probed.settled.set()
        if len(self._gone) >= MOST_GONE:
            del self._gone[next(iter(self._gone))]
        self._gone[node] = probed.clock  # mirrors that outlive it go on by the same line
        if self._probing is not None:
            self._probing.let_go(node)

    def _probed(self, node: str) -> _Probed:
        if node not in self._nodes:
            clock = self._gone.pop(node, None) or PeerClock(node, common=self._common)
            probed = self._nodes[node] = _Probed(clock, Pace(self._period_s))
            probed.opening = self._background.start(f"clock of {node}", self._open(node, probed))
        return self._nodes[node]

    # ------------------------------------------------------------------ for others

    async def base(self, node: str) -> _core.TimeBase:
        """The clock of a node, for whoever takes messages from it; waits a moment for the first estimate."""
        probed = self._probed(node)
        self._want(probed)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await probed.settled.wait()
        except TimeoutError:
            probed.settled.set()  # the next one does not wait
            logger.warning("no answer about the clock of node %s yet; its times are not translated until then", node)
        return probed.clock.base

    def known(self, node: str) -> _core.TimeBase | None:
        """None when there is nothing to translate, as far as is known."""
        probed = self._nodes.get(node)
        if probed is not None:
            self._want(probed)
        return None if probed is None or probed.clock.base.same else probed.clock.base

    def asked(self, node: str) -> None:
        """Somebody asks about that node's clock: it is probed closely for a while."""
        if (probed := self._nodes.get(node)) is not None:
            self._want(probed)

    def statuses(self) -> dict[str, ClockStatus]:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return {node: probed.clock.status(now) for node, probed in self._nodes.items()}

    def dropped(self) -> dict[str, int]:
        """Probes that were not believed, by reason."""
        return dict(self._probing.dropped) if self._probing is not None else {}

    def violations(self) -> list[str]:
        return [probed.clock.violation for probed in self._nodes.values() if probed.clock.violation]

    # ------------------------------------------------------------------ asking where

    async def _opened(self, node: str, payload: bytes) -> bytes:
        """Another node wants to probe this one's clock."""
        service.decode_untrusted(payload, OpenClock)
        if self._probing is None:
            raise QosMismatch("a clock probe", "this daemon is ending", "ask again when it is back")
        key, secret = self._probing.let_ask(node)
        return service.encode(ClockOpened(port=self._probing.port, key=key, secret=secret, clock=self._id))

    async def _open(self, node: str, probed: _Probed) -> None:
        retry_s = 0.5
        while self._probing is not None:
            try:
                answer = await self._mesh.request(node, service.CLOCK, service.encode(OpenClock()), REQUEST_TIMEOUT_S)
                opened = service.decode_untrusted(answer, ClockOpened)
                probed.host = await resolved(await self._host_of(node))
            except (QosMismatch, BadMessage) as exc:  # a daemon that knows nothing of clocks
                logger.info("the clock of node %s cannot be had: %s", node, exc)
                probed.settled.set()
                return
            except (TimeoutError, RingcastError, OSError) as exc:
                logger.debug("the clock of node %s is not known yet: %s", node, exc)
                await asyncio.sleep(retry_s)
                retry_s = min(LONGEST_RETRY_S, 2 * retry_s)
                continue
            probed.clock.opened(same=bool(self._id) and opened.clock == self._id)
            probed.port, probed.secret = opened.port, Secret(opened.key, opened.secret)
            if probed.clock.is_settled:
                probed.settled.set()
            self._begin(probed)
            return

    # ------------------------------------------------------------------ probing

    def _begin(self, probed: _Probed) -> None:
        now = self._loop.time()
        probed.pace.begin(now)
        self._wake(now)

    def _want(self, probed: _Probed) -> None:
        if probed.pace.want(self._loop.time()) and probed.port:
            self._begin(probed)

    def _look_who_sends(self, now: float) -> None:
        if now < self._look_s:
            return
        self._look_s = now + LOOK_S
        for node in set(self._senders()) & self._nodes.keys():
            self._want(self._nodes[node])

    def _wake(self, at_s: float) -> None:
        if self._timer is None or self._timer.when() > at_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._probing is None:
            return
        self._look_at_own()
        now = self._loop.time()
        self._look_who_sends(now)
        ready = [probed for probed in self._nodes.values() if probed.port]
        slowest = len(ready) / MOST_PER_S
        for probed in ready:
            if probed.pace.due_s > now + 0.001:
                continue
            self._probing.ask(probed.clock.node, probed.host, probed.port, probed.secret)
            same, wide = probed.clock.is_same, probed.clock.is_wide
            probed.pace.probed(now, same=same, wide=wide, slowest_s=slowest)
        if ready:
            self._wake(min(probed.pace.due_s for probed in ready))

    def _exchanged(self, node: str, exchange: Exchange) -> None:
        probed = self._nodes.get(node)
        if probed is None:
            return
        self._look_at_own()
        for event in probed.clock.add(exchange, _core.utc_ns()):
            self._tell(event)
        if probed.clock.is_settled:
            probed.settled.set()

    def _look_at_own(self) -> None:
        """Before every probe and every answer: an estimate must not learn from others what happened here."""
        found = look()
        for noticed in self._own.look(found):
            if noticed.kind == "step":
                said = f"this node's clock was set by {noticed.by_ns / 1e6:+.3f} ms"
                for probed in self._nodes.values():
                    probed.clock.own_step(noticed.by_ns, found.boot_ns, found.utc_ns)
                if self._probing is not None:
                    self._probing.forget()
            else:
                said = f"this machine was suspended for {noticed.by_ns / 1e9:.1f} s"
            kind = "own-step" if noticed.kind == "step" else "suspend"
            self._tell(ClockEvent(kind=kind, node="", at_ns=found.utc_ns, by_ns=noticed.by_ns, said=said))

    def _tell(self, event: ClockEvent) -> None:
        (logger.error if event.kind == "violation" else logger.warning)("%s", event.said)
        self._told(event)
