"""This daemon among others: the mesh, the streams that come and the streams that go, wired to the local manager.

A daemon without a network has none of this and opens no port. Invariant: whatever this node writes into the table
reaches the mesh, and whatever changes there is followed by the channels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from ringcast.control import service
from ringcast.control.limits import MAX_SETTINGS_PER_TAG
from ringcast.control.messages import (
    DestroyTag,
    SetChannel,
)
from ringcast.control.service import (
    CloseChannel,
    DirectChannel,
    Nothing,
    OpenAgain,
    OpenChannel,
    RegroupChannel,
    RetuneChannel,
    RingTaken,
    StartChannel,
)
from ringcast.control.status import ChannelStatus, NodeStatus
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.core.events import NameCleared, NameConflict
from ringcast.daemon.mesh.scouting import ScoutSettings
from ringcast.daemon.mesh.shell import CONTROL_PORT, Mesh
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.observe.telemetry import Telemetry
from ringcast.daemon.observe.watchers import Watchers
from ringcast.daemon.placing.placer import Placing
from ringcast.daemon.pull.buffers import Buffers
from ringcast.daemon.pull.pulls import Pulls
from ringcast.daemon.rings.fanout import FanOut
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.streams import routes
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.incoming import Delivery
from ringcast.daemon.streams.opening import REQUEST_TIMEOUT_S, Senders
from ringcast.daemon.streams.outgoing import Distribution
from ringcast.daemon.table.admission import is_receiver
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, TagRow
from ringcast.daemon.table.system_tags import check_published
from ringcast.errors import BadMessage, BrokenError, ResourceLimit, RingcastError, UnknownTag
from ringcast.model import addresses
from ringcast.model.identity import Presence
from ringcast.model.place import check_place
from ringcast.model.tag import check_name

logger = logging.getLogger("ringcast.daemon")

AGAIN_S = 2.0
LEAVE_S = 2.0
"""So long a publisher that left is shown to nodes that have no channel from it yet."""


class NetworkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a daemon listens and whom it calls. Scouting finds others by multicast; static peers suffice."""

    listen: tuple[str, ...]
    peers: tuple[str, ...] = ()
    scout: bool = True
    mesh: str = ""
    """Nodes of other meshes are not joined."""


class Network:
    """`deliver` hands what clients are to be told to the shell; `on_name` hears whether this node's name is its own."""

    def __init__(
        self, local: Local, settings: NetworkSettings, deliver: Callable[[list[Send]], None], watchers: Watchers,
        on_name: Callable[[NameConflict | NameCleared], None], stages: Stages,
    ) -> None:  # fmt: skip
        self._complaints = Complaints(logger)
        self._local = local
        self._watchers = watchers
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self.mesh = Mesh(
            local.table, on_changes=self._changed_elsewhere, on_presence=self._presence, listen=settings.listen,
            peers=settings.peers, mesh=settings.mesh, scouting=ScoutSettings() if settings.scout else None,
            liveliness=watchers.liveliness, on_name=on_name,
        )  # fmt: skip
        self._host = addresses.split(settings.listen[0], CONTROL_PORT)[0]
        anywhere = self._host in ("0.0.0.0", "::")
        self._ends = ReceivingEnds("" if anywhere else self._host)
        senders = Senders(local, self.mesh, self._ends, self._host_of)
        self.delivery = Delivery(local, self.mesh, self._ends, senders, deliver, self._linked, stages)
        self.distribution = Distribution(self.delivery, self._regrouped, self._ask_again, refused=self.mesh.refused)
        local.sharing.on_taken = senders.taken
        local.on_leaving = lambda incarnation: self._loop.call_later(LEAVE_S, self._wait_no_longer, incarnation)
        stages.bases = self.delivery
        stages.on_gone = self.distribution.stage_gone
        self._asking: set[asyncio.Task[None]] = set()
        self._words: set[asyncio.Task[None]] = set()
        self.pulls = Pulls(local, self.mesh)
        self.buffers = Buffers(local.table.node, self.delivery, self.mesh)
        for name, handler in (
            (service.OPEN, self._open), (service.START, self._start), (service.CLOSE, self._close),
            (service.AGAIN, self._again), (service.SET, self._set), (service.HOLD, self.buffers.hold),
            (service.RELEASE, self.buffers.release),
            (service.REGROUP, self._regroup), (service.RETUNE, self._retune), (service.DIRECT, self._direct),
            (service.TAKEN, self._taken),
        ):  # fmt: skip
            self.mesh.serve(name, handler)
        self.mesh.serve(service.PULL, self.pulls.serve)
        self.mesh.serve(service.DESTROY, self._destroy)
        self._gone: dict[str, list[asyncio.Future[None]]] = {}
        self.placing = Placing(local, self.mesh, self._host_of, self.channels, deliver, self.local_changed)
        self._telemetry = Telemetry(local, self.status, deliver, self.local_changed)

    async def start(self) -> None:
        """Raises OSError when an address cannot be listened on."""
        await self.mesh.start()
        self._telemetry.start()

    async def close(self) -> None:
        self._complaints.close()
        for task in self._words:
            task.cancel()
        self.buffers.close()
        self.placing.close()
        self._telemetry.close()
        self.distribution.close()
        self.delivery.close()
        await self.mesh.close()

    async def set_channel(self, request: SetChannel) -> None:
        """An administrator's word; the node that keeps the tag writes it down. Raises UnknownTag, QosMismatch,
        BrokenError, TimeoutError."""
        row = self._local.table.tag(request.tag)
        if row is None:
            raise UnknownTag(request.tag)
        nodes = {node.name for node in self.mesh.nodes() if node.state == "here"}
        reliable = sum(subscriber.info.reliable for subscriber in self._local.table.subscribers(request.tag))
        routes.check_setting(request.at, request.transport, nodes, reliable)
        routes.check_receiver(request, self._local.table.subscribers(request.tag))
        if row.primary == self._local.table.node:
            self._put_setting(request)
        else:
            await self.mesh.request(row.primary, service.SET, service.encode(request), REQUEST_TIMEOUT_S)

    async def _set(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, SetChannel)
        check_name(request.tag)
        if (request.node and not is_receiver(request.node)) or not _is_setting(request):
            raise BadMessage(f"a setting for node {request.node[:80]!r} at {request.at!r} by {request.transport!r}")
        self._put_setting(request)
        return service.encode(Nothing())

    def _put_setting(self, request: SetChannel) -> None:
        row = self._local.table.tag(request.tag)
        if row is not None and request.node not in row.settings and len(row.settings) >= MAX_SETTINGS_PER_TAG:
            full = f"tag {request.tag!r} has settings for {len(row.settings)} nodes, as many as there may be"
            raise ResourceLimit(full, "take some back with 'ringcast set TAG --node NAME --proxy auto'")
        self._deliver(self._local.set_channel(request))
        self.local_changed()

    def keeper(self, tag: str) -> str | None:
        """The other node that keeps a tag; None when it is this one, or nobody does."""
        row = self._local.table.tag(tag)
        return row.primary if row is not None and row.primary != self._local.table.node else None

    async def destroy(self, client: int, request: DestroyTag, keeper: str) -> None:
        """Have a tag removed by the node that keeps it, and wait until this one has seen it go.

        Raises UnknownTag, TagInUse, BrokenError, BadTagName (it is a daemon's own).
        """
        check_published(request.name, own=False)
        asked = service.DestroyTag(name=request.name, rights=sorted(self._local.rights(client)), force=request.force)
        gone: asyncio.Future[None] = self._loop.create_future()
        self._gone.setdefault(request.name, []).append(gone)
        try:
            await self.mesh.request(keeper, service.DESTROY, service.encode(asked), REQUEST_TIMEOUT_S, once=True)
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await gone
        except TimeoutError as exc:
            raise BrokenError(
                f"node {keeper!r}, which keeps tag {request.name!r}, does not answer; try again when 'ringcast nodes' "
                "shows it, or it is gone and another has taken the tag over"
            ) from exc
        finally:
            waiting = self._gone.get(request.name, [])
            if gone in waiting:
                waiting.remove(gone)

    def local_changed(self) -> None:
        """A client's request is done: tell the others what it wrote, and follow."""
        changes = self._local.take_changes()
        if not changes:
            return
        self.mesh.changed(changes)
        for change in changes:
            if isinstance(change.row, PublisherRow) and change.kind is ChangeKind.REMOVED:
                self.distribution.ring_gone(change.row.info.incarnation)
            elif isinstance(change.row, PublisherRow) and not change.row.alive:
                self.distribution.ring_left(change.row.info.incarnation)
        self.delivery.follow()
        self.placing.changed(changes)

    # ------------------------------------------------------------------ what happens elsewhere

    def _changed_elsewhere(self, changes: list[Change]) -> None:
        self._deliver(self._local.changed(changes))
        for kind, row in changes:
            if isinstance(row, PublisherRow) and kind is not ChangeKind.REMOVED:
                self.delivery.publisher_changed(row)
        self.local_changed()
        self.delivery.follow()
        self.placing.changed(changes)
        for kind, row in changes:
            if kind is ChangeKind.REMOVED and isinstance(row, TagRow):
                for future in self._gone.pop(row.name, []):
                    future.set_result(None)

    def _presence(self, presences: list[Presence]) -> None:
        for presence in presences:
            if presence.kind != "node":
                continue
            if presence.came:  # a proxy may have its node back
                self.delivery.follow()
                self.buffers.node_came(presence.node)
            else:
                self.buffers.node_gone(presence.node)
                self.distribution.node_gone(presence.node)
                self.delivery.node_gone(presence.node)
        self.placing.look_soon()
        self._deliver(self._watchers.told(presences))

    # ------------------------------------------------------------------ what others ask

    async def _open(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, OpenChannel)
        host = await self._host_of(node)
        try:
            return service.encode(await self.distribution.open(node, host, request))
        except OSError as exc:
            raise BrokenError(f"no data reaches node {node!r} at {host}: {exc.strerror or exc}") from exc

    async def _retune(self, node: str, payload: bytes) -> bytes:
        self.distribution.retune(service.decode_untrusted(payload, RetuneChannel))
        return service.encode(Nothing())

    async def _direct(self, node: str, payload: bytes) -> bytes:
        self.distribution.direct(service.decode_untrusted(payload, DirectChannel))
        return service.encode(Nothing())

    def _wait_no_longer(self, incarnation: int) -> None:
        self._deliver(self._local.wait_no_longer(incarnation))
        self.local_changed()

    async def _taken(self, node: str, payload: bytes) -> bytes:
        self._deliver(self._local.taken(node, service.decode_untrusted(payload, RingTaken).incarnation))
        self.local_changed()
        return service.encode(Nothing())

    async def _regroup(self, node: str, payload: bytes) -> bytes:
        self.delivery.regroup(service.decode_untrusted(payload, RegroupChannel))
        return service.encode(Nothing())

    def _regrouped(self, node: str, word: RegroupChannel) -> None:
        task = self._loop.create_task(self._say(node, word))
        self._words.add(task)
        task.add_done_callback(self._words.discard)

    async def _say(self, node: str, word: RegroupChannel) -> None:
        try:
            await self.mesh.request(node, service.REGROUP, service.encode(word), REQUEST_TIMEOUT_S)
        except (TimeoutError, RingcastError, OSError):
            pass  # whoever is gone need not know; the next change is told again

    async def _start(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, StartChannel)
        host = await self._host_of(node)
        try:
            await self.distribution.start(node, host, request)
        except OSError as exc:
            raise BrokenError(f"no data reaches node {node!r} at {host}: {exc.strerror or exc}") from exc
        return service.encode(Nothing())

    async def _host_of(self, node: str) -> str:
        """Where data for a node goes, and comes from. Raises BrokenError."""
        return self._host if node == self._local.table.node else await self.mesh.host_of(node)

    async def _close(self, node: str, payload: bytes) -> bytes:
        self.distribution.close_channel(service.decode_untrusted(payload, CloseChannel))
        return service.encode(Nothing())

    async def _destroy(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, service.DestroyTag)
        check_name(request.name)
        keeper = self.keeper(request.name)
        if keeper is not None:
            raise BrokenError(f"tag {request.name!r} has just changed hands; node {keeper!r} keeps it now. Try again")
        check_published(request.name, own=False)  # no other node has a right on what this daemon publishes
        self._local.destroy(request.name, node, request.rights, force=request.force)
        self._deliver(self._local.changed([]))
        self.local_changed()
        return service.encode(Nothing())

    async def _again(self, node: str, payload: bytes) -> bytes:
        self.delivery.again(node, service.decode_untrusted(payload, OpenAgain).key)
        return service.encode(Nothing())

    def _ask_again(self, node: str, key: int) -> None:
        task = self._loop.create_task(self._tell_again(node, key))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _tell_again(self, node: str, key: int) -> None:
        try:
            await self.mesh.request(node, service.AGAIN, service.encode(OpenAgain(key=key)), AGAIN_S)
        except (TimeoutError, RingcastError, OSError) as exc:
            self._complaints.warning(node, "node %s was not told to open a channel again: %s", node, exc)

    def _linked(self, fanout: FanOut) -> None:
        """Whoever pushes for this fan-out, a publisher or a mirror, may give links back."""
        if fanout.unlisten is None:
            self._loop.add_reader(fanout.fileno(), self._answered, fanout)
            fanout.unlisten = partial(self._unlisten, fanout.fileno())

    def _unlisten(self, fd: int) -> None:
        self._loop.remove_reader(fd)

    def _answered(self, fanout: FanOut) -> None:
        """A publisher gave links back, or closed its end."""
        answers = fanout.take_answers()
        if not answers and fanout.unlisten is not None:
            fanout.unlisten()
        for answer in answers:
            self.distribution.given_back(answer)

    # ------------------------------------------------------------------ what `ringcast nodes` and `channels` show

    def nodes(self) -> list[NodeStatus]:
        return self.mesh.nodes()

    def refusals(self) -> dict[str, str]:
        return self.mesh.status().refusals

    def status(self) -> tuple[list[ChannelStatus], dict[str, dict[str, int]]]:
        """The channels of this node, and {transport: {reason: count}} of what its receiving ends dropped."""
        return list(self.channels()), self.dropped()

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: count}} of what this node's receiving ends dropped; what was not believed of other
        daemons, or not done for them, is under 'mesh'."""
        dropped = self._ends.dropped()
        if refused := self.mesh.status().refused:
            dropped["mesh"] = refused
        return dropped

    def channels(self) -> Iterator[ChannelStatus]:
        """The channels that there are now, one by one; those that end before their turn are left out."""
        tags = {row.info.incarnation: row.info.tag for row in self._local.table.all_publishers()}
        for key, sent in list(self.distribution.channels.items()):
            if self.distribution.channels.get(key) is sent:
                yield _status(
                    sent.sending.counters(), direction="out", node=sent.node, incarnation=sent.incarnation,
                    tag=tags.get(sent.incarnation, ""), transport=sent.transport, every=sent.every,
                    size=sent.size, rate_hz=sent.rate_hz, reliable=sent.reliable,
                )  # fmt: skip
        for stream, channel in list(self.delivery.channels.items()):
            if self.delivery.channels.get(stream) is channel:
                yield _status(
                    channel.mirror.counters(), direction="in", node=channel.via, incarnation=stream.incarnation,
                    tag=channel.row.info.tag, transport=channel.transport, every=channel.ring.every,
                    size=stream.demand.size, rate_hz=stream.demand.rate_hz, reliable=stream.demand.reliable,
                )  # fmt: skip


def _is_setting(request: SetChannel) -> bool:
    try:
        place = not request.at or bool(check_place(request.at))
    except ValueError:
        return False
    return place and (request.at or "").isprintable() and (request.transport or "").isprintable()


def _status(counters: dict[str, int], **fields: Any) -> ChannelStatus:
    messages, size, lost = (counters.pop(name, None) for name in ("messages", "bytes", "lost"))
    return ChannelStatus(**fields, messages=messages, bytes=size, lost=lost, counters=counters)
