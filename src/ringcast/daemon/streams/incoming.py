"""The paper's delivery manager: streams of other nodes' publishers that come to this node, as mirror rings.

Which there should be follows from the table: for each way in which this node's subscribers want a tag, one channel from
each live publisher on another node. `follow` makes it so, whatever changed. Invariants: equal demands share one channel
and one mirror; after a broken channel the next one begins where the last one ended; a stream that moves, to another
proxy or transport, is closed only when what continues it flows, and a move that fails leaves it where it is; a
publisher that left is received to its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ringcast.control.service import RegroupChannel, Start
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.coalesced import Coalesced
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.rings.demand import Demand, SubscribeOptions
from ringcast.daemon.rings.ring import Ring
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.opening import REQUEST_TIMEOUT_S, Opening, patience_s
from ringcast.daemon.streams.sender_notices import SenderNotices
from ringcast.daemon.streams.state import Event, State
from ringcast.daemon.streams.wanted import Held, IncomingChannel, Resumption, Stream, end_of, joint_start
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import PublisherGone, RingcastError
from ringcast.model.place import node_of

logger = logging.getLogger("ringcast.daemon")

RETRY_S = 0.5
ENDED_S = 0.1
AT_ONCE = 32
"""Channels from one node that are being opened."""


class IncomingChannels:
    """`deliver` hands what clients are to be told to the shell; `on_followed` is called when channels are, or will soon
    be, as they should."""

    def __init__(
        self, local: Local, mesh: Mesh, ends: ReceivingEnds, opening: Opening, senders: SenderNotices,
        deliver: Callable[[list[Send]], None], on_followed: Callable[[], None], background: Background,
    ) -> None:  # fmt: skip
        self._local = local
        self._complaints = Complaints(logger)
        self._background = background
        self._mesh = mesh
        self._deliver = deliver
        self._on_followed = on_followed
        self._ends = ends
        self._sequence = opening
        self._senders = senders
        self.channels: dict[Stream, IncomingChannel] = {}
        self._opening: dict[Stream, asyncio.Task[None]] = {}
        self._recalled: set[int] = set()
        """Keys of channels that are to be opened again, though they are not open yet."""
        self._resume: dict[Stream, Resumption] = {}
        self._complained: set[Stream] = set()
        self._held = Held()
        self._leaving = False
        self._left: dict[int, PublisherRow] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._following = Coalesced(self.follow)
        self._turns: dict[str, asyncio.Semaphore] = {}

    # ------------------------------------------------------------------ what there should be

    def wanted(self) -> dict[Stream, PublisherRow]:
        """Every stream that this node's subscribers and proxies ask for, with its publisher's row."""
        streams: dict[Stream, PublisherRow] = {}
        for row in self._remote_publishers():
            for demand in self._demands(row.info.tag):
                streams[Stream(row.info.incarnation, demand)] = row
        for tag, demand in self._held.kept:
            for row in self._local.table.publishers(tag):
                if row.alive and row.owner != self._local.table.node:
                    streams[Stream(row.info.incarnation, demand)] = row
                elif row.alive and row.depth < demand.depth:  # by way of a socket to ourselves, which must lose nothing
                    streams[Stream(row.info.incarnation, demand._replace(transport="tcp"))] = row
        rows = {row.info.incarnation: row for row in self._remote_publishers()} if self._held.relayed else {}
        return streams | {
            stream: rows[stream.incarnation] for stream in self._held.relayed if stream.incarnation in rows
        }

    def follow_soon(self) -> None:
        """Follow once for all that changes meanwhile."""
        self._following.soon()

    def follow(self) -> None:
        """Open what is missing and close what nobody wants. Takes the longer the more publishers there are."""
        streams, begin = self.wanted(), self._local.sharing.begins
        for stream in list(streams):
            self._retune(stream, streams)
        self._leaving = False
        alive = {row.info.incarnation for row in self._remote_publishers()}
        for stream in [stream for stream in self.channels if stream not in streams]:
            if self.channels[stream].ring.readers and stream.incarnation in alive:
                self._leaving = True  # its readers have not been shown the ring that continues it
            elif stream.incarnation not in alive and self._drains(stream):
                self._leaving = True  # it closes when the publisher's last message is here
            elif not self._is_kept(stream):
                if self._row(stream) is None:  # perhaps its node is away only for now
                    self._remember(stream)
                self._close(stream)
        for stream, (tag, _) in list(self._resume.items()):
            if stream.demand not in self._demands(tag) and stream not in self._held.relayed:
                del self._resume[stream]
        for stream, row in streams.items():
            if stream in self._opening:
                continue
            incoming = self.channels.get(stream)
            if incoming is not None and incoming.life.state is State.DRAINING:
                incoming.life.on(Event.RETURNED)
                incoming.leaves_at = None
            if incoming is None or incoming.broken or incoming.via != self._proxy(stream.demand, row):
                start = "earliest" if stream.demand.depth else self._continuing(stream.incarnation, begin(row.info.tag))
                self._open_soon(stream, row, start)
        self._on_followed()
        self._tell_ends()

    def publisher_changed(self, row: PublisherRow) -> None:
        """A publisher of another node changed. When it left, readers learn where it ended once no channel carries it
        any more."""
        self._left.pop(row.info.incarnation, None)
        if not row.alive:
            self._left[row.info.incarnation] = row

    def _tell_ends(self) -> None:
        carried = {stream.incarnation for stream in [*self.channels, *self._opening]} if self._left else set()
        for incarnation in [incarnation for incarnation in self._left if incarnation not in carried]:
            self._deliver(self._local.sharing.ended(self._left.pop(incarnation)))

    def _drains(self, stream: Stream) -> bool:
        """Whether messages of a publisher that left are still to come."""
        incoming = self.channels[stream]
        row = self._row(stream)
        if row is None or row.alive or incoming.broken:
            return False
        if stream in self._held.relayed:  # stays until the proxies and stages that read it release it
            return True
        if incoming.has_all_before(row.end) or not incoming.ring.readers:
            return False
        return incoming.waits_for_rest(asyncio.get_running_loop().time())

    def _row(self, stream: Stream) -> PublisherRow | None:
        """The row of a channel's publisher, as the table has it now."""
        rows = self._local.table.publishers(self.channels[stream].row.info.tag)
        return next((row for row in rows if row.info.incarnation == stream.incarnation), None)

    def _retune(self, wanted: Stream, streams: dict[Stream, PublisherRow]) -> None:
        """When only the transport's parameters changed, keep the channel and tell both its ends."""
        if wanted in self.channels or wanted in self._opening:
            return
        for stream, incoming in self.channels.items():
            if stream not in streams and not incoming.broken and stream.differs_in_parameters(wanted):
                break
        else:
            return
        transport = wanted.demand.transport
        incoming.group.retune(incoming.key, transport)
        del self.channels[stream]
        self.channels[wanted] = incoming
        incoming.transport = transport
        incoming.ring.demand = wanted.demand
        self._senders.retuned(incoming)

    def regroup(self, request: RegroupChannel) -> None:
        """Somebody else shares a stream with a channel here, or left."""
        for incoming in self.channels.values():
            if incoming.key == request.key:
                incoming.group.regroup(request.key, request.peers)

    def _continuing(self, incarnation: int, otherwise: Start) -> Start:
        """Where a stream begins: where the streams of the same publisher that come here already have got to."""
        known = [known.mirror.next_seq for stream, known in self.channels.items() if stream.incarnation == incarnation]
        behind = self._local.sharing.continuing(incarnation)  # a stage here may be behind the ring that it reads
        return min([*known, *([] if behind is None else [behind])], default=otherwise)

    async def prepare(self, pattern: str, options: SubscribeOptions, start: Start) -> None:
        """Open the channels that a subscription is going to need, so that nothing sent after it is missed. Those that
        cannot be opened now are tried again later."""
        table = self._local.table
        rows = [row for row in table.publishers_matching(pattern) if row.alive and row.owner != table.node]
        rows = [row for row in rows if self._local.sharing.selects(pattern, options, row.info.tag)]
        demand = partial(self._local.sharing.demand, options)
        while rows:  # again for what its reader could not receive itself, and is not asked to any more
            tasks: dict[asyncio.Task[None], Stream] = {}
            for row in rows:
                stream = Stream(row.info.incarnation, demand(row.info.tag))
                if stream not in self.channels and not self._made_here(stream.demand):
                    tasks[self._opening.get(stream) or self._open_soon(stream, row, start)] = stream
            if tasks:
                await asyncio.wait(tasks, timeout=max(patience_s(stream.demand) for stream in tasks.values()))
            tried = {one.incarnation: one.demand for one in tasks.values() if one.demand.reader}
            rows = [r for r in rows if tried.get(r.info.incarnation, demand(r.info.tag)) != demand(r.info.tag)]
        if any(known.demand.reader and not incoming.ring.readers for known, incoming in self.channels.items()):
            self.follow()  # another stream took its place

    async def keep(self, tag: str, demand: Demand) -> None:
        """Hold mirrors of a tag's publishers, of the demand's own depth, whoever subscribes."""
        self._held.kept[tag, demand] += 1
        await self.settled(tag)

    def let_go(self, tag: str, demand: Demand) -> None:
        if self._held.lets_go(self._held.kept, (tag, demand)):
            self.follow_soon()

    def is_relayed(self, tag: str) -> bool:
        """Whether proxies, stages or buffers here read it."""
        return self._held.reads(tag, self._local.table.publishers(tag))

    def _is_kept(self, stream: Stream) -> bool:
        """Whether a pull buffer holds it: then it stays after its publisher left."""
        return self._held.keeps(self.channels[stream].row.info.tag, stream.demand)

    async def settled(self, pattern: str) -> None:
        """Returns when the matching channels are open, and those before them closed, or after REQUEST_TIMEOUT_S."""
        self.follow()
        concerned = {row.info.incarnation for row in self._local.table.publishers_matching(pattern)}
        tasks = [task for stream, task in self._opening.items() if stream.incarnation in concerned]
        if tasks:
            await asyncio.wait(tasks, timeout=REQUEST_TIMEOUT_S)
            self.follow()  # closes what they took the place of

    # ------------------------------------------------------------------ whole streams, for proxies and stages here

    async def hold_relay(self, stream: Stream, start: Start) -> Ring:
        """See `Relays`. The ring of a publisher here, or a mirror; to be let go of by `release_relay`."""
        ring = self._local.rings.of_incarnation(stream.incarnation)
        self._held.relayed[stream] += 1
        if ring is None:
            try:
                ring = (await self._relay(stream, start)).ring
            except BaseException:
                self.release_relay(stream)
                raise
        return ring

    def release_relay(self, stream: Stream) -> None:
        if self._held.lets_go(self._held.relayed, stream):
            self.follow_soon()

    async def _relay(self, stream: Stream, start: Start) -> IncomingChannel:
        if stream not in self.channels:
            row = next((row for row in self._remote_publishers() if row.info.incarnation == stream.incarnation), None)
            if row is None:
                raise PublisherGone(stream.incarnation, self._local.table.node)
            start = self._continuing(stream.incarnation, start)
            await asyncio.wait([self._opening.get(stream) or self._open_soon(stream, row, start)])
        if stream not in self.channels:
            raise PublisherGone(stream.incarnation, self._local.table.node)
        return self.channels[stream]

    def _demands(self, tag: str) -> set[Demand]:
        return {demand for demand in self._local.sharing.demands(tag) if not self._made_here(demand)}

    def _made_here(self, demand: Demand) -> bool:
        """A stage on this node scales for it, and reads the whole stream."""
        return demand.size is not None and demand.at == f"node:{self._local.table.node}"

    def _remote_publishers(self) -> list[PublisherRow]:
        table = self._local.table
        return [row for row in table.all_publishers() if row.alive and row.owner != table.node]

    # ------------------------------------------------------------------ opening and closing

    def _open_soon(self, stream: Stream, row: PublisherRow, start: Start) -> asyncio.Task[None]:
        def ended() -> None:
            if self._opening.get(stream) is task:
                del self._opening[stream]

        task = self._opening[stream] = self._background.start(
            f"open a channel from {row.info}", self._open(stream, row, joint_start(stream, self.channels, start)), ended
        )
        return task

    async def _open(self, stream: Stream, row: PublisherRow, start: Start) -> None:
        demand = stream.demand
        via = self._proxy(demand, row)
        try:
            # More at once would run out of time while they wait for each other.
            async with self._turns.setdefault(via, asyncio.Semaphore(AT_ONCE)):
                begin: Start = await self._resume[stream].end if stream in self._resume else start
                hold = demand.reliable and demand in self._demands(row.info.tag)
                incoming, shown = await self._sequence.open(stream, row, via, begin, hold=hold)
        except (TimeoutError, RingcastError, OSError) as exc:
            if stream not in self._complained:
                self._complained.add(stream)
                said = str(exc) or "no answer in time"
                self._complaints.warning(via, "no channel from %s on %s yet: %s", row.info, row.info.tag, said)
            self._try_again()
            return
        self._complained.discard(stream)
        self._resume.pop(stream, None)
        before = self.channels.pop(stream, None)
        self.channels[stream] = incoming
        # From now on it may be lost, and then be opened anew, though this task has not ended yet.
        self._opening.pop(stream, None)
        self._deliver(shown)
        if before is not None:
            self._end_channel(before)
        if incoming.key in self._recalled:
            self.again(incoming.via, incoming.key)
        # Who wanted it may have left while it was opened, and so may its publisher.
        self.follow_soon()
        if self._watching is None:
            self._watch()

    def _proxy(self, demand: Demand, row: PublisherRow) -> str:
        """The node that sends it: the proxy's, or while that is away the publisher's, which scales the same way."""
        proxy = node_of(demand.at)
        return proxy if proxy and self._mesh.node(proxy) is not None else row.owner

    def _remember(self, stream: Stream) -> None:
        incoming = self.channels[stream]
        end = self._background.start("end of a mirror", end_of(incoming.mirror))
        self._resume[stream] = Resumption(incoming.row.info.tag, end)

    def _close(self, stream: Stream, *, tell: bool = True) -> None:
        self._end_channel(self.channels.pop(stream), tell=tell)

    def _end_channel(self, incoming: IncomingChannel, *, tell: bool = True) -> None:
        incoming.life.on(Event.CLOSED)
        incoming.receiving.close_channel(incoming.key)
        self._ends.release(incoming.receiving)
        if incoming.ring.alive:  # or it went with its tag, which somebody here destroyed
            self._deliver(self._local.sharing.drop_mirror(incoming.ring))
        if tell:
            self._senders.send_close(incoming)

    def lost(self, stream: Stream, *, tell: bool = False) -> None:
        """The sender is gone, or the node it relays for: reopen the channel where it ended when that is possible
        again."""
        if stream in self.channels and self._is_kept(stream):
            self.channels[stream].life.on(Event.LOST)
            self._try_again()
        elif stream in self.channels:
            self._remember(stream)
            self._close(stream, tell=tell)
            self._try_again()

    def again(self, node: str, key: int) -> None:
        """The sender closed the channel and wants to be asked again. That may be said before it is known here that it
        began to send: the two may come by different links."""
        self._recalled = (self._recalled | {key}) & self._sequence.keys
        for stream, incoming in list(self.channels.items()):
            if incoming.key == key and incoming.via == node:
                self._remember(stream)
                self._close(stream, tell=False)
                self.follow_soon()

    def make_anew(self, concerned: Callable[[Ring], bool]) -> None:
        """Somebody may not read these mirrors any more: others take their place."""
        for stream in [stream for stream, incoming in self.channels.items() if concerned(incoming.ring)]:
            self._remember(stream)
            self._close(stream)
        self.follow_soon()

    def node_gone(self, node: str) -> None:
        for stream, incoming in list(self.channels.items()):
            if node in (incoming.via, incoming.row.owner):
                self.lost(stream, tell=incoming.via != node)

    def close(self) -> None:
        """End all channels without telling their senders: those see the node go."""
        for timer in (self._retry, self._watching):
            if timer is not None:
                timer.cancel()
        self._following.close()
        self._complaints.close()
        self._ends.close()

    def _watch(self) -> None:
        """Poll the transports: some notice before the mesh does that a sender is gone, or that multicast no longer
        reaches us."""
        deaf = self._ends.take_deaf()
        for incoming in [incoming for incoming in self.channels.values() if incoming.key in deaf]:
            self._senders.direct(incoming)
        ended = self._ends.ended()
        for stream in [stream for stream, incoming in self.channels.items() if incoming.key in ended]:
            self.lost(stream)
        if self._leaving:
            self.follow_soon()
        self._watching = asyncio.get_running_loop().call_later(ENDED_S, self._watch) if self.channels else None

    def _try_again(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._retry = None
        self.follow()
