"""The mesh's shell: what `ringcast.daemon.mesh.core` decides becomes sockets, timers and callbacks in the event loop.

Invariants: nothing here blocks or polls, so a daemon alone in its mesh sleeps; whatever one peer sends, the others do
not notice: garbage and strangers are counted and lose their link; events are handled one after the other, also those
that callbacks cause. Call everything from the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec

from ringcast.control.peering import MAX_PAYLOAD_BYTES, Hello, NodeRecord, PeerMessage, Service
from ringcast.control.status import NodeStatus
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.core.cluster import Cluster
from ringcast.daemon.mesh.core.events import (
    Action,
    Announce,
    Changed,
    Close,
    Connect,
    Doubted,
    Event,
    Foreign,
    Leave,
    Linked,
    LocalChanges,
    NameCleared,
    NameConflict,
    NodeChanged,
    NodeDown,
    NodeRestarted,
    NodeUp,
    Offence,
    Received,
    Scouted,
    Seeds,
    Send,
    TagContest,
    Tick,
    Unlinked,
    Wanted,
)
from ringcast.daemon.mesh.core.roster import Status
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.mesh.link_pool import LinkPool
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.daemon.mesh.scouting import Scouting, ScoutSettings, ScoutStatus
from ringcast.daemon.mesh.services import Handler, LinkLost, Services, asking
from ringcast.daemon.observe.complaints import Complaints, printable
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.table.rows import Change, ChangeKind
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, BrokenError, MessageTooLarge
from ringcast.model import addresses
from ringcast.model.identity import Presence

logger = logging.getLogger("ringcast.mesh")

MAX_TURNED_AWAY = 64
"""Hosts that called, were not understood, and are remembered."""

PROOF_S = 1.5
"""A node that is called back to see whether it is where it says has so long to answer."""

CONTROL_PORT = 7417
_STATES = {Status.ALIVE: "here", Status.SUSPECT: "suspect", Status.DEAD: "gone"}


class MeshStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `ringcast doctor` says of the mesh."""

    serving: bool
    links: int
    strangers_refused: int
    bad_messages: int
    slow_links: int
    refused: dict[str, int]
    """What was not believed of others or not done for them, by reason."""
    foreign: int
    """Links refused because the other end is of another mesh."""
    refusals: dict[str, str]
    """{address: why this daemon and the one there do not get along}"""
    scouting: list[ScoutStatus]


class Mesh:
    """This daemon among the others.

    `listen` and `peers` are addresses, port 0 is any. Of the callbacks, `on_changes` is given what changed in `table`
    other than by this node's writing, `on_presence` what came and went, `on_name` that this node's name is another's
    (or no longer), `on_contest` that a tag of this node gave way to one of the same name.
    """

    def __init__(
        self,
        table: TagTable,
        *,
        on_changes: Callable[[list[Change]], None],
        on_presence: Callable[[list[Presence]], None] | None = None,
        on_name: Callable[[NameConflict | NameCleared], None] | None = None,
        on_contest: Callable[[TagContest], None] | None = None,
        listen: tuple[str, ...] = (f"0.0.0.0:{CONTROL_PORT}",),
        peers: tuple[str, ...] = (),
        mesh: str = "",
        scouting: ScoutSettings | None = None,
        timing: Timing | None = None,
        seed: int | None = None,
        liveliness: Liveliness | None = None,
        background: Background | None = None,
    ) -> None:
        """Raises ValueError when an address is none."""
        self.table = table
        self.liveliness = liveliness or Liveliness(table.node)
        self._on_changes = on_changes
        self._on_presence = on_presence
        self._on_name = on_name
        self._on_contest = on_contest
        self._listen = [addresses.split(address, CONTROL_PORT) for address in listen]
        self._loop = asyncio.get_running_loop()
        self._background = background or Background()
        self._services = Services(self._background, on_done=lambda link: self._link_pool.settled(link))
        self._link_pool = LinkPool(
            self._background, on_event=self._happened, on_message=self._message, on_offence=self._offence,
            on_end=self._services.link_down, is_busy=self._services.busy,
        )  # fmt: skip
        self._cluster = Cluster(
            table, secrets.randbits(64) or 1, rng=Random(seed), now_ns=self._now_ns(), mesh=mesh, timing=timing,
            seeds=tuple(addresses.join(*addresses.split(peer, CONTROL_PORT)) for peer in peers),
        )  # fmt: skip
        self._mesh = mesh
        self._settings = scouting
        self._scouting: Scouting | None = None
        self.mistakes = 0
        """Events and actions that failed by an error of ours; each is in the log."""
        self._events: deque[Event] = deque()
        self._busy = False
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: dict[str, list[asyncio.Future[None]]] = {}
        self._doubts: list[asyncio.Future[None]] = []
        self._turned_away: dict[str, str] = {}
        self._complaints = Complaints(logger)
        self._foreign = 0
        self._said_foreign: set[tuple[str, str]] = set()

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Listen, dial and call out. Raises OSError when an address cannot be listened on."""
        ports = [await self._link_pool.listen(host, port) for host, port in self._listen]
        self._running = True
        self._happened(Announce(control=tuple(self._link_pool.control)))
        own = [row for row in self.table.tags() if row.primary == self.table.node]
        self._happened(LocalChanges([Change(ChangeKind.ADDED, row) for row in own]))
        self._happened(Tick())
        if self._settings is not None:
            listening = [(host, port) for (host, _), port in zip(self._listen, ports, strict=True)]
            self._scouting = Scouting(
                self._settings, mesh=self._mesh, incarnation=self.me.incarnation, listening=listening,
                on_heard=self._heard,
            )  # fmt: skip
            await self._scouting.start()

    async def close(self) -> None:
        """Say goodbye and end all links."""
        if self._running:
            self._happened(Leave())
            self._stop()
            await self._link_pool.close()

    async def abort(self) -> None:
        """End without a word, as a daemon that is killed does."""
        if self._running:
            self._stop()
            await self._link_pool.abort()

    def _stop(self) -> None:
        self._running = False
        self._complaints.close()
        self._services.close()
        self._background.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._scouting is not None:
            self._scouting.close()
        for node in list(self._awaited):
            self._wake(node)

    # ------------------------------------------------------------------ what the daemon asks

    @property
    def me(self) -> NodeRecord:
        return self._cluster.membership.me

    @property
    def refused(self) -> Counter[str]:
        """Of others, by reason; whoever else refuses peers something counts here too."""
        return self.table.refused

    @property
    def serving(self) -> bool:
        """False while an older daemon has this one's name: it must not serve then."""
        return self._cluster.membership.serving

    def changed(self, changes: list[Change]) -> None:
        """This node's own rows in the table changed: tell the others. What was there at the start is told then."""
        self._happened(LocalChanges(changes))
        self._present(self.liveliness.of_changes(changes))

    def announce(self, data: tuple[str, ...]) -> None:
        """Data for this node goes to these addresses."""
        self._happened(Announce(data=data))

    def seek(self, peers: tuple[str, ...]) -> None:
        """Others may be found at these addresses from now on. Links that stand are kept. Raises ValueError."""
        self._happened(Seeds(tuple(addresses.join(*addresses.split(peer, CONTROL_PORT)) for peer in peers)))

    def node(self, name: str) -> NodeRecord | None:
        """Another node, by name, while it is here."""
        return self._cluster.membership.names.holders.get(name)

    def nodes(self) -> list[NodeStatus]:
        """Everybody known, this node too."""
        membership = self._cluster.membership
        rows = []
        for member in membership.roster.members.values():
            record = member.record
            holder = membership.roster.holder(record.name)
            gone = member.status is Status.DEAD
            conflict = not gone and holder is not None and holder.incarnation != record.incarnation
            rows.append(
                NodeStatus(
                    name=record.name, state="conflict" if conflict else _STATES[member.status],
                    me=record.incarnation == self.me.incarnation,
                    linked=membership.links.to(record.incarnation) is not None, incarnation=record.incarnation,
                    control=record.control, data=record.data,
                )
            )  # fmt: skip
        return sorted(rows, key=lambda row: (row.name, row.incarnation))

    def status(self) -> MeshStatus:
        return MeshStatus(
            serving=self.serving, links=len(self._cluster.membership.links.peers()),
            strangers_refused=self._link_pool.strangers_refused, bad_messages=self._cluster.offences,
            slow_links=self._link_pool.slow_links, refused=self._refused(), foreign=self._foreign,
            refusals=self._turned_away | self._cluster.membership.refusals,
            scouting=self._scouting.status() if self._scouting else [],
        )  # fmt: skip

    def _refused(self) -> dict[str, int]:
        unsaid = {"unsaid in the log": self._complaints.suppressed}
        return {reason: count for reason, count in (dict(self.refused) | unsaid).items() if count}

    def serve(self, service: str, handler: Handler) -> None:
        """Answer requests of that name: `await handler(node, payload)` returns the reply or raises a RingcastError."""
        self._services.handlers[service] = handler

    async def request(self, node: str, service: str, payload: bytes, timeout: float, *, once: bool = False) -> bytes:
        """Ask another node, or this one; it may be asked twice unless `once`.

        Raises what its handler raised, BrokenError (it is not here, or went away), TimeoutError, MessageTooLarge.
        """
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise MessageTooLarge(len(payload), MAX_PAYLOAD_BYTES)
        async with asyncio.timeout(timeout):
            if node == self.table.node:
                return await self._services.call_here(node, service, payload)
            try:
                return await self._services.call(await self._link_to(node), service, payload)
            except LinkLost:
                # Of two links with one node the superfluous one is closed, whatever is under way on it.
                if once or self.node(node) is None:
                    raise
                return await self._services.call(await self._link_to(node), service, payload)

    async def _link_to(self, node: str) -> PeerLink:
        while True:
            self._happened(Wanted(node))
            if self.node(node) is None or not self._running:
                raise BrokenError(f"node {node!r} is not in the mesh; 'ringcast nodes' shows who is")
            number = self._cluster.membership.link_to(node)
            link = self._link_pool.links.get(number) if number is not None else None
            if link is not None and not link.closing:
                return link
            future = self._loop.create_future()
            self._awaited.setdefault(node, []).append(future)
            await future

    async def host_of(self, node: str) -> str:
        """Where data for a node may be sent: for the one that asks right now, or else the one of that name.

        A record may name any address, so it must be the one that the node calls from, or where it answers. Raises
        BrokenError.
        """
        link = asking.get()
        if link is None or link.closing or link.peer is None or link.peer.name != node:
            link = await self._link_to(node)
        host = self._proven(link)
        if host is None:
            self._happened(Doubted(link.number))
            try:
                async with asyncio.timeout(PROOF_S):
                    while (host := self._proven(link)) is None:
                        self._doubts.append(self._loop.create_future())
                        await self._doubts[-1]
            except TimeoutError:
                pass
        if host is None:
            self.refused["unproven address"] += 1
            record = self._cluster.membership.peer(link.number)
            claimed = ", ".join(record.control) if record is not None and record.control else "no address"
            raise BrokenError(
                f"node {node!r} calls from {link.remote} and says it is at {claimed}, where it does not answer; "
                "data is sent only to where a node is. Start its daemon with --listen and an address that others reach"
            )
        return host

    def _proven(self, link: PeerLink) -> str | None:
        return self._cluster.membership.proven_host(link.number, addresses.split(link.remote)[0])

    # ------------------------------------------------------------------ what happens

    def _happened(self, event: Event) -> None:
        self._events.append(event)
        if self._busy:
            return  # it is this one's turn after those before it
        self._busy = True
        try:
            while self._events:
                self._handle(self._events.popleft())
        finally:
            self._busy = False
        self._plan()

    def _handle(self, event: Event) -> None:
        if not self._running:
            return
        try:
            actions = self._cluster.handle(event, self._now_ns())
        except Exception:
            # A mistake of ours costs the link by which it came, never the others theirs.
            self.mistakes += 1
            self._complaints.exception("", "an event of the mesh could not be handled: %.200r", event)
            if isinstance(event, Received):
                self._link_pool.close_link(event.link, gently=False)
            return
        for action in actions:
            self._try(action, partial(self._perform, action))
        self._try(event, lambda: self._present(self.liveliness.of_actions(actions)))

    def _try(self, what: Action | Event, work: Callable[[], None]) -> None:
        """The cluster has decided all actions of an event already, so each is done whatever becomes of the others."""
        try:
            work()
        except Exception:
            self.mistakes += 1
            self._complaints.exception("", "the mesh could not do what it decided: %.200r", what)

    def _perform(self, action: Action) -> None:
        match action:
            case Send(link, message):
                self._link_pool.send(link, message)
            case Connect(address):
                self._link_pool.dial(address)
            case Close(link, reason, gently):
                logger.debug("link %d ends: %s", link, reason)
                self._link_pool.close_link(link, gently=gently)
            case Changed(changes):
                self._present(self.liveliness.of_changes(changes))
                self._on_changes(changes)
            case Linked(_, record):
                self._wake(record.name)
                for address in record.control:
                    self._turned_away.pop(addresses.split(address)[0], None)
            case Foreign():
                self._say_foreign(action)
            case NameConflict() | NameCleared():
                if isinstance(action, NameConflict):
                    self._complaints.error("", "%s", action)
                if self._on_name is not None:
                    self._on_name(action)
            case TagContest():
                self._complaints.warning(action.won.primary, "%s", action)
                if self._on_contest is not None:
                    self._on_contest(action)
            case NodeRestarted(old, _):
                self._wake(old.name)
            case NodeUp() | NodeChanged() | NodeDown() | Unlinked():
                self._wake(action.record.name)

    def _wake(self, node: str) -> None:
        """Something is different about a node that requests may wait for."""
        for future in self._awaited.pop(node, []):
            if not future.done():
                future.set_result(None)

    def _present(self, presences: list[Presence]) -> None:
        if presences and self._on_presence is not None:
            self._on_presence(presences)

    def _message(self, link: PeerLink, message: PeerMessage) -> None:
        if not isinstance(message, Service):
            self._happened(Received(link.number, message))
            if isinstance(message, Hello):
                self._settle_doubts()
        elif not link.closing:
            try:
                self._services.received(link, message)
            except BadMessage as exc:
                self._offence(link, exc.reason)

    def _settle_doubts(self) -> None:
        """Somebody said who it is, perhaps where it was called."""
        doubts, self._doubts = self._doubts, []
        for future in doubts:
            if not future.done():
                future.set_result(None)

    def _offence(self, link: PeerLink, reason: str) -> None:
        if link.peer is None and link.address is None:
            self._turn_away(link.remote, reason)
        elif link.peer is not None or self._cluster.membership.refusals.get(str(link.address)) != reason:
            whom = link.peer.name if link.peer else link.remote
            self._complaints.warning(addresses.split(link.remote)[0], "link with %s: %s", whom, reason)
        self._happened(Offence(link.number, reason))

    def _turn_away(self, remote: str, reason: str) -> None:
        """Somebody who dialled and said nothing that we understand; tries again and again, and is said once."""
        host = addresses.split(remote)[0]
        if self._turned_away.get(host) != printable(reason):
            self._complaints.warning(host, "%s called and was turned away: %s", host, reason)
        if host in self._turned_away or len(self._turned_away) < MAX_TURNED_AWAY:
            self._turned_away[host] = printable(reason)

    def _say_foreign(self, action: Foreign) -> None:
        """Once per host and mesh; whoever is of another mesh may call again and again."""
        self._foreign += 1
        link = self._link_pool.links.get(action.link)
        remote = (link.address or link.remote) if link is not None else ""
        host = addresses.split(remote)[0] if remote else "?"
        if (host, action.mesh) not in self._said_foreign and len(self._said_foreign) < MAX_TURNED_AWAY:
            self._said_foreign.add((host, action.mesh))
            logger.warning("no link with %s: %s", remote, action.reason)
        if link is not None and link.address is None and len(self._turned_away) < MAX_TURNED_AWAY:
            self._turned_away[host] = action.reason

    def _heard(self, address: str, incarnation: int) -> None:
        self._happened(Scouted(address, incarnation))

    # ------------------------------------------------------------------ time

    def _now_ns(self) -> int:
        return int(self._loop.time() * 1e9)

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ns = self._cluster.due_ns()
        if self._running and due_ns is not None:
            # The loop may wake a breath too early; a nanosecond late is right.
            self._timer = self._loop.call_at(due_ns / 1e9 + 1e-6, self._happened, Tick())
