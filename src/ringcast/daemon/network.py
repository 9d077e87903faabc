"""This daemon among others: the mesh, the streams that come and the streams that go, wired to the local manager.

A daemon without a network has none of this and opens no port. Invariant: whatever this node writes into the table
reaches the mesh, and whatever changes there is followed by the channels.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ringcast import _core
from ringcast.clock.probe import PERIOD_S
from ringcast.control import service
from ringcast.control.between.choosing import Lived
from ringcast.control.service import Nothing, RingTaken
from ringcast.control.status import ChannelStatus, ClockEvent, ClockStatus, NodeStatus
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.access.node_rights import NodeRights
from ringcast.daemon.admitting.admitting import this_calibration
from ringcast.daemon.admitting.capacities import Capacities, lost_by_node
from ringcast.daemon.admitting.overtaken import Overtaken
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.chooser import Choosing
from ringcast.daemon.choosing.explaining import Explaining
from ringcast.daemon.choosing.hearing import Hearing
from ringcast.daemon.choosing.lines import Lines
from ringcast.daemon.choosing.meeting import Meeting
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.choosing.spreading import Spreading
from ringcast.daemon.clients.kept_elsewhere import KeptElsewhere
from ringcast.daemon.clients.local import Local
from ringcast.daemon.clocks.clocks import Clocks
from ringcast.daemon.effects import Send
from ringcast.daemon.fidelity.silence import Silence
from ringcast.daemon.intakes.handing import Handing
from ringcast.daemon.mesh.core.events import NameCleared, NameConflict
from ringcast.daemon.mesh.scouting import ScoutSettings
from ringcast.daemon.mesh.shell import CONTROL_PORT, Mesh
from ringcast.daemon.observe import channels
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.observe.own_publisher import OwnPublisher
from ringcast.daemon.observe.telemetry import Telemetry
from ringcast.daemon.observe.watchers import Watchers
from ringcast.daemon.placing.placer import Placing
from ringcast.daemon.placing.queue_changes import QueueChanges
from ringcast.daemon.placing.ways import Ways
from ringcast.daemon.priority import agreement
from ringcast.daemon.priority.agreement import Agreement
from ringcast.daemon.pull.buffers import Buffers
from ringcast.daemon.pull.pulls import Pulls
from ringcast.daemon.rings.link_answers import LinkAnswers
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.streams.channel_services import ChannelServices, ReceiverNotices
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.incoming import IncomingChannels
from ringcast.daemon.streams.opening import Opening
from ringcast.daemon.streams.outgoing import OutgoingChannels
from ringcast.daemon.streams.sender_notices import SenderNotices
from ringcast.daemon.streams.sources import RingSources, WholeStreams
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow
from ringcast.daemon.table.system_tags import CHOICE_ATTRIBUTES, CLOCK_ATTRIBUTES, choices_tag, clocks_tag
from ringcast.errors import RingcastError
from ringcast.model import addresses
from ringcast.model.identity import Presence
from ringcast.model.priority import Priority
from ringcast.transport.urgent.awake import AWAKE
from ringcast.transport.urgent.limits import LIMITS
from ringcast.transport.urgent.links import LINKS

if TYPE_CHECKING:
    from ringcast.security.identity import Identity

logger = logging.getLogger("ringcast.daemon")

LEAVE_S = 2.0
"""How long a publisher that left stays listed for nodes that have no channel from it yet."""


class NetworkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a daemon listens and which nodes it dials. Scouting finds others by multicast; static peers suffice."""

    listen: tuple[str, ...]
    peers: tuple[str, ...] = ()
    scout: bool = True
    mesh: str = ""
    """Nodes of other meshes are not joined."""
    probe_s: float = PERIOD_S
    common_clock: bool = False
    identity: str = ""
    """The folder of this node's certificate; '' joins whoever comes."""

    @classmethod
    def of(cls, values: Mapping[str, Any], identity: str) -> NetworkSettings:
        """From settings as they are in force."""
        return cls(
            listen=values["listen"], peers=values["peers"], scout=values["scout"], mesh=values["mesh"],
            probe_s=values["clock.probe_s"], common_clock=values["clock.source"] == "common", identity=identity,
        )  # fmt: skip


class Network:
    """`deliver` hands what clients are to be told to the shell; `on_name` hears whether this node's name is its own."""

    def __init__(
        self, local: Local, settings: NetworkSettings, deliver: Callable[[list[Send]], None], watchers: Watchers,
        on_name: Callable[[NameConflict | NameCleared], None], background: Background, audit: Audit,
    ) -> None:  # fmt: skip
        self._complaints = Complaints(logger)
        self._local = local
        self._watchers = watchers
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self.mesh = Mesh(
            local.table, on_changes=self._changed_elsewhere, on_presence=self._presence, listen=settings.listen,
            peers=settings.peers, mesh=settings.mesh, scouting=ScoutSettings() if settings.scout else None,
            liveliness=watchers.liveliness, on_name=on_name, background=background,
            identity=_identity(settings.identity),
            on_refusal=lambda remote, reason: audit.note("stranger", host_of(remote), "join", "", reason),
        )  # fmt: skip
        self._node_rights = NodeRights(local, audit)
        self.mesh.guard(self._node_rights.check)
        local.table.believe(self._node_rights.believer())
        self._host = addresses.split(settings.listen[0], CONTROL_PORT)[0]
        bind = "" if addresses.is_wildcard(self._host) else self._host
        self._ends = ReceivingEnds(bind)
        self.clocks = Clocks(
            local.table.node, self.mesh, bind, self._host_of, background, self._clock_event,
            period_s=settings.probe_s, common=settings.common_clock,
            senders=lambda: (channel.via for channel in self.incoming.channels.values()),
        )  # fmt: skip
        self._clock_events = OwnPublisher(
            local, clocks_tag(local.table.node), CLOCK_ATTRIBUTES, deliver, self.local_changed
        )
        # Streams come, stages and channels read them, streams go. Two arrows point back: `on_followed` and `on_gone`.
        self._senders = SenderNotices(self.mesh, background, self._complaints)
        sealed = bool(settings.identity)
        self.handing = Handing(local, bind, deliver)
        opening = Opening(local, self.mesh, self._ends, self._host_of, self.clocks.base, sealed, self.handing)
        self.incoming = IncomingChannels(
            local, self.mesh, self._ends, opening, self._senders, deliver, self._followed, background
        )
        self._silence = Silence(lambda: self.incoming.channels.values(), self.mesh, background, self._complaints)
        if not sealed and os.environ.get("RINGCAST_SOLE_READERS") != "no":  # keys of sealed streams stay with daemons
            local.sharing.read_otherwise = self.incoming.is_relayed
        self.stages = Stages(
            local, deliver, background, WholeStreams(self.incoming), lambda spec: self.outgoing.stage_gone(spec)
        )
        answers = LinkAnswers(lambda answer: self.outgoing.given_back(answer))
        sources = RingSources(self.incoming, self.stages, local.sharing, deliver, answers.listen)
        receivers = ReceiverNotices(self.mesh, background, self._complaints)
        self.outgoing = OutgoingChannels(
            sources, background, receivers.regrouped, receivers.open_again, refused=self.mesh.refused, sealed=sealed
        )
        self.mesh.on_revoked = self.outgoing.change_secrets
        ChannelServices(self.mesh, self.incoming, self.outgoing, self._host_of)
        agreed = Agreement(local.table, self.mesh, self.incoming.settled, self._host_of, self._refused)
        self.tags = KeptElsewhere(local, self.mesh, deliver, self.local_changed, agreed)
        self.pulls = Pulls(local, self.mesh, self.clocks.known)
        self.buffers = Buffers(local.table.node, self.incoming, self.mesh, background)
        for name, handler in (
            (service.HOLD, self.buffers.hold), (service.RELEASE, self.buffers.release),
            (service.PULL, self.pulls.serve), (service.TAKEN, self._taken),
        ):  # fmt: skip
            self.mesh.serve(name, handler)
        self.placing = Placing(local, self.mesh, self._host_of, self.channels, deliver, self.local_changed, background)
        ways = Ways(self.mesh, self._host_of, asyncio.get_running_loop().time, background)
        self._overtaken = Overtaken(local, deliver, self.local_changed, lambda: not self._capacities.asking)
        self._capacities = Capacities(
            local.table.node, self.mesh, ways.to, this_calibration, background, self._losses, self._overtaken.soon
        )
        local.admitting.others = self._capacities
        self.models = Models(self.mesh, self._node_rights.may_choose)
        self._spreading = Spreading(self.mesh, self.models, _core.utc_ns, background)
        lines = Lines(self._host_of, lambda: LINKS.rate_bps / 8)
        self._meeting = Meeting(self._receivers, self.clocks.statuses, lines, lambda tag: self._hearing.line(tag))
        self._hearing = Hearing(
            local.table.node, self.channels, self.clocks.statuses, lines, self.models.versions, self._meeting.others
        )
        self.choosing = Choosing(
            local, self.mesh, self._hearing, self.models, _core.utc_ns, deliver, self.local_changed, background,
            self._tell_lived,
        )  # fmt: skip
        self._explaining = Explaining(local.table, self.mesh, self.choosing.explained)
        self._queue_changes = QueueChanges(lines.changed, self.choosing.line_changed)
        tag = choices_tag(local.table.node)
        self._choices = OwnPublisher(local, tag, CHOICE_ATTRIBUTES, deliver, self.local_changed)
        self._telemetry = Telemetry(
            local, lambda: self._meeting.look(self.channels()), self.dropped, deliver, self.local_changed, background,
            self._meeting.begin,
        )  # fmt: skip

    async def start(self) -> None:
        """Raises OSError when an address cannot be listened on."""
        LINKS.sweep()
        self.clocks.start()
        await self.mesh.start()
        self._telemetry.start()
        self._queue_changes.start()

    async def close(self) -> None:
        self._queue_changes.close()
        self._complaints.close()
        self.buffers.close()
        self.placing.close()
        self.choosing.close()
        self.clocks.close()
        self._clock_events.close()
        self._choices.close()
        self._telemetry.close()
        self.outgoing.close()
        self._silence.close()
        self._overtaken.close()
        self.incoming.close()
        await self.mesh.close()

    def limit(self, values: Mapping[str, Any]) -> None:
        """Put this node's limits for channels in force; those that are open keep what they have."""
        self.placing.reporting.cpu_share = values["limits.cpu_share"]
        LIMITS.priority, LIMITS.cores = values["limits.sched_priority"], values["limits.sched_share"]
        AWAKE.latency_us = values["limits.wake_latency"]
        LINKS.rate_bps, LINKS.share = values["limits.link_rate"] or 0, values["limits.link_share"]

    def enforce(self) -> None:
        """The rules for other nodes changed: end what they may not have any more, and see what they may now publish."""
        rights = self._node_rights
        self.outgoing.drop_where(lambda node, incarnation: not rights.may_receive(node, incarnation))
        self.buffers.drop_where(lambda node, tag: node != self._local.table.node and not rights.may_pull(node, tag))
        changes = self._local.table.believe(rights.believer())
        self._presence(self.mesh.liveliness.of_changes(changes))
        self._changed_elsewhere(changes)

    # ------------------------------------------------------------------ what happens on this node

    def local_changed(self) -> None:
        """A client's request is done: tell the others what it wrote, and follow."""
        changes = self._local.take_changes()
        if self._local.sharing.left:  # also a history, which is in no table
            self._local.sharing.left = False
            self.incoming.follow_soon()
        if not changes:
            return
        self.mesh.changed(changes)
        for change in changes:
            if isinstance(change.row, PublisherRow) and change.kind is ChangeKind.REMOVED:
                self.outgoing.ring_gone(change.row.info.incarnation)
            elif isinstance(change.row, PublisherRow) and not change.row.alive:
                self.outgoing.ring_left(change.row.info.incarnation)
        self.incoming.follow_soon()
        self.placing.changed(changes)
        self.choosing.changed(changes)

    def _followed(self) -> None:
        """Streams that come are, or will soon be, as they should."""
        self.stages.follow()
        self._silence.follow()

    def taken(self, row: PublisherRow) -> None:
        """All subscribers here have the stream of another node's publisher."""
        self._senders.taken(row)

    def leaving(self, incarnation: int) -> None:
        """A publisher here left before all other nodes had channels from it: wait for them, not for long."""
        self._loop.call_later(LEAVE_S, self._wait_no_longer, incarnation)

    def _wait_no_longer(self, incarnation: int) -> None:
        self._deliver(self._local.publishers.wait_no_longer(incarnation))
        self.local_changed()

    # ------------------------------------------------------------------ what happens elsewhere

    def _changed_elsewhere(self, changes: list[Change]) -> None:
        self._deliver(self._local.changed(changes))
        for kind, row in changes:
            if isinstance(row, PublisherRow) and kind is not ChangeKind.REMOVED:
                self.incoming.publisher_changed(row)
        self.local_changed()
        self.incoming.follow_soon()
        self.placing.changed(changes)
        self.choosing.changed(changes)
        self._capacities.changed(changes)
        self._overtaken.changed(changes)
        self.tags.changed(changes)

    def _presence(self, presences: list[Presence]) -> None:
        for presence in presences:
            if presence.kind != "node":
                continue
            if presence.came:  # a proxy may have its node back
                self.incoming.follow_soon()
                self.buffers.node_came(presence.node)
                self.clocks.node_came(presence.node)
                self._spreading.node_came(presence.node)
            else:
                self.clocks.node_gone(presence.node)
                self.buffers.node_gone(presence.node)
                self.outgoing.node_gone(presence.node)
                self.incoming.node_gone(presence.node)
        self.placing.look_soon()
        self._deliver(self._watchers.told(presences))

    def _clock_event(self, event: ClockEvent) -> None:
        try:
            self._clock_events.send(msgspec.json.encode(event))
        except RingcastError as exc:
            self._complaints.warning("clock events", "an event of a clock was not published: %s", exc)

    def _tell_lived(self, lived: Lived) -> None:
        try:
            self._choices.send(msgspec.json.encode(lived))
        except RingcastError as exc:
            self._complaints.warning("choices", "what a choice of transport cost was not published: %s", exc)

    async def load_model(self, fd: int) -> list[str]:
        """Take a client's file into use, here and on every node that is here. Returns warnings. Raises QosMismatch."""
        await asyncio.to_thread(self.models.load_from, fd)
        return await self._spreading.give(row.name for row in self.mesh.nodes() if row.state == "here" and not row.me)

    async def _taken(self, node: str, payload: bytes) -> bytes:
        self._deliver(self._local.publishers.taken(node, service.decode_untrusted(payload, RingTaken).incarnation))
        self.local_changed()
        return service.encode(Nothing())

    async def _host_of(self, node: str) -> str:
        """Where data for a node goes, and comes from. Raises BrokenError."""
        return self._host if node == self._local.table.node else await self.mesh.host_of(node)

    # ------------------------------------------------------------------ what `ringcast nodes` and `channels` show

    def nodes(self) -> list[NodeStatus]:
        known = self.clocks.statuses()
        return [msgspec.structs.replace(row, clock=_clock_of(row, known)) for row in self.mesh.nodes()]

    def refusals(self) -> dict[str, str]:
        return self.mesh.status().refusals

    async def status(self, *, why: bool) -> tuple[list[ChannelStatus], dict[str, dict[str, int]]]:
        """The channels of this node, and {transport: {reason: count}} of what its receiving ends dropped. Only with
        `why` are other nodes asked."""
        rows = list(map(self._meeting.known, self.channels(read_back=True)))
        return await self._explaining.explained(rows) if why else rows, self.dropped()

    def _losses(self) -> dict[str, float]:
        return lost_by_node(map(self._meeting.known, self.channels()))

    def _receivers(self, tag: str) -> int:
        table = self._local.table
        return len({row.owner for row in table.subscribers(tag)} - {row.owner for row in table.publishers(tag)})

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: count}} of what this node's receiving ends dropped; what was not believed of other
        daemons, or not done for them, is under 'mesh', and probes that no node of the mesh sent under 'clock'."""
        dropped = self._ends.dropped()
        if refused := self.mesh.status().refused:
            dropped["mesh"] = refused
        if forged := self.clocks.dropped():
            dropped["clock"] = forged
        return dropped

    def _refused(self, tag: str, words: Priority) -> list[str]:
        """Why a tag's channels here do not have what they are to have of these words, or had before."""
        return agreement.refused(self.channels(read_back=True, of=tag), words)

    def channels(self, *, read_back: bool = False, of: str | None = None) -> Iterator[ChannelStatus]:
        """The channels that there are now, or those of one tag, one by one; `read_back` asks the kernel for their
        priorities in force."""
        ranged = self._local.sharing.ranged.values()
        words = self._local.sharing.promises.words
        return channels.statuses(
            self._local.table, self.outgoing, self.incoming, ranged, words, read_back=read_back, of=of
        )


def host_of(remote: str) -> str:
    """Without the port, which is another one for each call."""
    try:
        return addresses.split(remote)[0]
    except ValueError:
        return remote


def _clock_of(row: NodeStatus, known: Mapping[str, ClockStatus]) -> ClockStatus | None:
    if row.me:
        return ClockStatus(source="own")
    return known.get(row.name, ClockStatus(source="unknown")) if row.state == "here" else None


def _identity(folder: str) -> Identity | None:
    """Raises BadIdentity."""
    if not folder:
        return None
    from ringcast.security.identity import Identity

    return Identity(Path(folder))
