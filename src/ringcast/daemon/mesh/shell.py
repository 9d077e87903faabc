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
from typing import TYPE_CHECKING

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
    Event,
    Foreign,
    Leave,
    LinkDown,
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
)
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.mesh.link_pool import LinkPool
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.daemon.mesh.reaching import Reaching
from ringcast.daemon.mesh.revocations import REVOKED, Revocations
from ringcast.daemon.mesh.scouting import Scouting, ScoutSettings
from ringcast.daemon.mesh.services import Gate, Handler, LinkLost, Services
from ringcast.daemon.mesh.status import MeshStatus, node_statuses
from ringcast.daemon.mesh.turned_away import TurnedAway
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.table.rows import Change, ChangeKind
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, MessageTooLarge
from ringcast.model import addresses
from ringcast.model.identity import Presence

if TYPE_CHECKING:
    from ringcast.security.identity import Identity

logger = logging.getLogger("ringcast.mesh")

CONTROL_PORT = 7417


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
        identity: Identity | None = None,
        on_refusal: Callable[[str, str], None] = lambda host, reason: None,
    ) -> None:
        """Raises ValueError when an address is none."""
        self.table = table
        self.liveliness = liveliness or Liveliness(table.node)
        self._on_changes = on_changes
        self._on_presence = on_presence
        self._on_name = on_name
        self._on_contest = on_contest
        self._on_refusal = on_refusal
        self._listen = [addresses.split(address, CONTROL_PORT) for address in listen]
        self._loop = asyncio.get_running_loop()
        self._background = background or Background()
        self._services = Services(self._background, on_done=lambda link: self._link_pool.settled(link))
        self._link_pool = LinkPool(
            self._background, on_event=self._happened, on_message=self._message, on_offence=self._offence,
            on_end=self._services.link_down, is_busy=self._services.busy, on_refused=self._unproven, identity=identity,
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
        self._reaching = Reaching(
            self._cluster.membership, self._link_pool.links, self.refused, self._happened, lambda: self._running
        )
        self._complaints = Complaints(logger)
        self._turned_away = TurnedAway(self._complaints)
        self.on_revoked: Callable[[], None] = lambda: None
        """Told when a newer list of revoked certificates counts."""
        self._revocations = None
        if identity is not None:
            self._revocations = Revocations(
                identity, self._link_pool, self.request, self._background, self._complaints, lambda: self.on_revoked()
            )
            self.serve(REVOKED, self._revocations.told)

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
                on_heard=lambda address, incarnation: self._happened(Scouted(address, incarnation)),
            )  # fmt: skip
            await self._scouting.start()

    async def close(self) -> None:
        """Tell the others, and end all links."""
        if self._running:
            self._happened(Leave())
            self._stop()
            await self._link_pool.close()

    async def abort(self) -> None:
        """End without telling the others, as a killed daemon does."""
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
        self._reaching.close()
        if self._revocations is not None:
            self._revocations.close()

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

    def reload_identity(self) -> None:
        """The list of revoked certificates in the identity's folder may be newer."""
        if self._revocations is not None:
            self._revocations.reload()

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
        return node_statuses(self._cluster.membership)

    def status(self) -> MeshStatus:
        return MeshStatus(
            serving=self.serving, links=len(self._cluster.membership.links.peers()),
            strangers_refused=self._link_pool.strangers_refused, bad_messages=self._cluster.offences,
            slow_links=self._link_pool.slow_links, refused=self._refused(), foreign=self._turned_away.foreign,
            refusals=self._turned_away.reasons | self._cluster.membership.links.refusals,
            scouting=self._scouting.status() if self._scouting else [],
        )  # fmt: skip

    def _refused(self) -> dict[str, int]:
        unsaid = {"unsaid in the log": self._complaints.suppressed, "asked too fast": self._services.throttled}
        return {reason: count for reason, count in (dict(self.refused) | unsaid).items() if count}

    def serve(self, service: str, handler: Handler) -> None:
        """Answer requests of that name: `await handler(node, payload)` returns the reply or raises a RingcastError."""
        self._services.handlers[service] = handler

    def guard(self, gate: Gate) -> None:
        """Ask `gate` before each request of another node."""
        self._services.gate = gate

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
                return await self._services.call(await self._reaching.link_to(node), service, payload)
            except LinkLost:
                # Of two links with one node the superfluous one is closed, whatever is under way on it.
                if once or self.node(node) is None:
                    raise
                return await self._services.call(await self._reaching.link_to(node), service, payload)

    async def host_of(self, node: str) -> str:
        """Where data for a node may be sent. Raises BrokenError."""
        return await self._reaching.host_of(node)

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
            # A mistake of ours costs the link that the event came by, and no other.
            self.mistakes += 1
            self._complaints.exception("", "an event of the mesh could not be handled: %.200r", event)
            if isinstance(event, Received):
                self._link_pool.close_link(event.link, gently=False)
            return
        for action in actions:
            self._try(action, partial(self._perform, action))
        if isinstance(event, LinkDown):
            self._reaching.links_changed()
        self._try(event, lambda: self._present(self.liveliness.of_actions(actions)))

    def _try(self, what: Action | Event, work: Callable[[], None]) -> None:
        """The cluster has decided all actions of an event already, so each is done whatever becomes of the others."""
        try:
            work()
        except Exception:
            self.mistakes += 1
            self._complaints.exception("", "an action of the mesh failed: %.200r", what)

    def _perform(self, action: Action) -> None:
        match action:
            case Send(link, message):
                self._link_pool.send(link, message)
            case Connect(address):
                self._link_pool.dial(address)
            case Close(link, reason, gently):
                logger.debug("link %d ends: %s", link, reason)
                self._link_pool.close_link(link, gently=gently)
                self._reaching.links_changed()
            case Changed(changes):
                self._present(self.liveliness.of_changes(changes))
                self._on_changes(changes)
            case Linked(_, record):
                self._reaching.changed(record.name)
                if self._revocations is not None:
                    self._revocations.linked(record.name)
                for address in record.control:
                    self._turned_away.accepted(address)
            case Foreign():
                self._refuse_foreign(action)
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
                self._reaching.changed(old.name)
            case NodeUp() | NodeChanged() | NodeDown() | Unlinked():
                self._reaching.changed(action.record.name)

    def _present(self, presences: list[Presence]) -> None:
        if presences and self._on_presence is not None:
            self._on_presence(presences)

    def _message(self, link: PeerLink, message: PeerMessage) -> None:
        if not isinstance(message, Service):
            self._happened(Received(link.number, message))
            if isinstance(message, Hello):
                self._reaching.links_changed()
        elif not link.closing:
            try:
                self._services.received(link, message)
            except BadMessage as exc:
                self._offence(link, exc.reason)

    def _offence(self, link: PeerLink, reason: str) -> None:
        if link.peer is None and link.address is None:
            self._turned_away.stranger(link.remote, reason)
            self._on_refusal(link.remote, reason)
        elif link.peer is not None or self._cluster.membership.links.refusals.get(str(link.address)) != reason:
            whom = link.peer.name if link.peer else link.remote
            self._complaints.warning(addresses.split(link.remote)[0], "link with %s: %s", whom, reason)
        self._happened(Offence(link.number, reason))

    def _unproven(self, remote: str, reason: str, dialled: bool) -> None:
        """A handshake failed: there is no link."""
        self.refused["not proven"] += 1
        self._on_refusal(remote, reason)
        self._turned_away.unproven(remote, reason, dialled=dialled)

    def _refuse_foreign(self, action: Foreign) -> None:
        link = self._link_pool.links.get(action.link)
        remote = (link.address or link.remote) if link is not None else ""
        dialled = link is not None and link.address is not None
        self._on_refusal(remote, action.reason)
        self._turned_away.of_another_mesh(remote, action.mesh, action.reason, dialled=dialled)

    # ------------------------------------------------------------------ time

    def _now_ns(self) -> int:
        return int(self._loop.time() * 1e9)

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ns = self._cluster.due_ns()
        if self._running and due_ns is not None:
            # The loop may wake slightly too early; a moment late is right.
            self._timer = self._loop.call_at(due_ns / 1e9 + 1e-6, self._happened, Tick())
