"""The daemon's shell: the listening socket, the clients' sockets and their processes, in one asyncio loop.

It owns sockets, time and the log; what a request means is `ringcast.daemon.local`'s business. Invariants: nothing here
blocks or polls, so an idle daemon uses no CPU; whatever one client does, the others do not notice; what a client held
is withdrawn as soon as its connection or its process ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from importlib import metadata
from typing import Any

from ringcast import _core
from ringcast.control import link
from ringcast.control.messages import (
    PROTOCOL_VERSION,
    Bye,
    DestroyTag,
    Done,
    DropBuffer,
    GetStatus,
    Hello,
    HoldBuffer,
    ListChannels,
    ListHistories,
    ListNodes,
    Move,
    NodeStatus,
    PullHistory,
    Request,
    SetChannel,
    StageDown,
    StageUp,
    Status,
    Subscribe,
    Unwatch,
    Watch,
    Welcome,
)
from ringcast.daemon import listing, route
from ringcast.daemon.budget import Budget
from ringcast.daemon.buffers import without_network
from ringcast.daemon.connection import Connection
from ringcast.daemon.descriptor import Descriptor, own
from ringcast.daemon.door import Door, no_descriptors
from ringcast.daemon.effects import Send
from ringcast.daemon.events import NameCleared, NameConflict
from ringcast.daemon.fanout import FanOut, Flushed
from ringcast.daemon.holdings import Core
from ringcast.daemon.lifecycle import Claim
from ringcast.daemon.liveliness import Liveliness
from ringcast.daemon.local import OWN_CLIENT, Local, asked_of
from ringcast.daemon.machine import Peer, peer_of
from ringcast.daemon.network import Network, NetworkSettings
from ringcast.daemon.processes import Processes
from ringcast.daemon.pull import INLINE_BYTES, Pulls, beside, inline
from ringcast.daemon.refusal import refuse
from ringcast.daemon.stages import Stages
from ringcast.daemon.table import TagTable
from ringcast.daemon.watchers import Watchers
from ringcast.errors import BadMessage, BrokenError, NameTaken, QosMismatch, ResourceLimit, RingcastError

logger = logging.getLogger("ringcast.daemon")

PACKETS_PER_TURN = 16
RETRY_S = 0.05
PACE_S = 0.2
MAX_PULLS = 32
"""Of one client, under way at once."""


class Server:
    """Serve the clients that connect to `claim`'s socket until `stop`, or until idle for `idle_linger_s` if given."""

    def __init__(
        self, claim: Claim, core: Core, *, node: str, budget_bytes: int, max_files: int, idle_linger_s: float | None,
        network: NetworkSettings | None = None,
    ) -> None:  # fmt: skip
        self._node = node
        self._until_idle = idle_linger_s is not None
        self.local = Local(TagTable(node, _core.utc_ns()), Budget(budget_bytes, max_lingering=max_files // 8), core)
        self.bad_messages = 0
        self.slow_clients = 0
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._stopped = asyncio.Event()
        self._numbers = itertools.count(1)
        self._connections: dict[int, Connection] = {}
        self._peers: dict[int, Peer] = {}
        self._processes = Processes(self._loop, self._process_died)
        self._stages = Stages(self.local, self._deliver)
        self._pacing: asyncio.TimerHandle | None = None
        self.local.paces.on_first = self._pace_later
        self._name_taken: NameTaken | None = None
        self._watchers = Watchers(Liveliness(node))
        self._network = None
        if network is not None:
            self._network = Network(self.local, network, self._deliver, self._watchers, self._named, self._stages)
        self._pulls = self._network.pulls if self._network is not None else Pulls(self.local, None)
        self._pulling: dict[asyncio.Task[None], int] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._door = Door(
            claim, self._loop, on_enter=self._enter, is_empty=lambda: not self._connections, on_idle=self.stop,
            idle_linger_s=idle_linger_s,
        )  # fmt: skip

    async def run(self, ready: Callable[[], None] | None = None) -> None:
        """`ready` is called once clients may connect. Raises OSError when the network cannot be listened on."""
        try:
            if self._network is not None:
                await self._network.start()
            self._door.open()
            if ready is not None:
                ready()
            await self._stopped.wait()
        finally:
            await self._stages.close()
            self._pulls.close()
            if self._network is not None:
                await self._network.close()
            self._close()

    def stop(self) -> None:
        self._stopped.set()

    def _enter(self, sock: socket.socket) -> None:
        connection = Connection(next(self._numbers), sock, self._loop, self._read, self._broken)
        peer = peer_of(sock)
        try:
            self._processes.watch(sock, peer.pid)
        except ProcessLookupError:
            connection.close()
            return
        except OSError as exc:
            connection.push(refuse(0, no_descriptors(exc)))
            connection.close()
            return
        self._peers[connection.number] = peer
        self._connections[connection.number] = connection

    # ------------------------------------------------------------------ requests

    def _read(self, connection: Connection) -> None:
        for _ in range(PACKETS_PER_TURN):
            if not connection.reading:
                return
            try:
                received = self._receive(connection)
                if received is None:
                    return
                self._handle(connection, received)
            except BadMessage as exc:
                self.bad_messages += 1
                if self.bad_messages.bit_count() == 1:  # 1st, 2nd, 4th, 8th...: a flood must not fill the disk
                    pid = self._peers[connection.number].pid
                    logger.warning("process %d sent: %s (%d in all)", pid, exc, self.bad_messages)
                connection.push(refuse(0, exc))
                self._broken(connection, "bad message")
            except Exception:
                # A mistake of ours costs the client that met it its connection, never the others theirs.
                logger.exception("a request could not be handled")
                self._broken(connection, "mistake")

    def _refuse(self, connection: Connection, exc: BadMessage) -> None:
        self.bad_messages += 1
        logger.warning("process %d: %s", self._peers[connection.number].pid, exc)
        connection.push(refuse(0, exc))
        self._broken(connection, "bad message")

    def _receive(self, connection: Connection) -> link.Received[Request] | None:
        try:
            received = link.receive_request(connection.socket)
        except BlockingIOError:
            return None
        except OSError:
            received = None
        if received is None:
            self._broken(connection, "gone")
        return received

    def _handle(self, connection: Connection, received: link.Received[Request]) -> None:
        request, fds = received.message, own(received.fds)
        if received.limit is not None:
            connection.push(refuse(request.id, received.limit))
        elif not connection.greeted:
            self._greet(connection, request, fds)
        elif isinstance(request, GetStatus):
            connection.push(self._status(request.id))
        elif isinstance(request, ListNodes):
            for page in listing.node_pages(request.id, self._nodes()):
                connection.push(page)
        elif isinstance(request, ListChannels):
            channels, dropped = self._network.status() if self._network is not None else ([], {})
            for listed in listing.channel_pages(request.id, channels, dropped):
                connection.push(listed)
        elif isinstance(request, ListHistories):
            self._list_histories(connection, request)
        elif isinstance(request, PullHistory):
            self._start_pull(connection, request)
        elif isinstance(request, Watch | Unwatch):
            self._deliver(self._watchers.handle(connection.number, request))
        elif isinstance(request, Bye):
            connection.push(Done(id=request.id))
            connection.end()
        elif self._network is not None and isinstance(request, DestroyTag) and self._network.keeper(request.name):
            self._begin(self._destroy(self._network, connection, request))
        elif isinstance(request, StageUp | StageDown):
            self._stages.answered(connection.number, request, fds)
            connection.push(Done(id=request.id))
        elif isinstance(request, Subscribe) and (self._network is not None or request.size is not None):
            try:
                route.check_asked(asked_of(request), self.local.table.tag(request.pattern), self._node)
            except QosMismatch as exc:
                connection.push(refuse(request.id, exc))
                return
            self._begin(self._subscribe(connection, request, fds))
        elif isinstance(request, Move):
            self._begin(self._move(connection, request, fds))
        elif self._network is not None and isinstance(request, SetChannel):
            self._begin(self._answer(connection, request.id, self._network.set_channel(request)))
        elif isinstance(request, HoldBuffer):
            self._begin(self._answer(connection, request.id, self._hold(connection.number, request)))
        elif isinstance(request, DropBuffer):
            if self._network is not None:
                self._network.buffers.unwant(connection.number, request.buffer)
            connection.push(Done(id=request.id))
        else:
            self._do(connection, request, fds)

    def _do(self, connection: Connection, request: Request, fds: list[Descriptor]) -> None:
        self._deliver(self.local.handle(connection.number, request, fds))
        self._follow()

    def _follow(self) -> None:
        """A client's request is done, or it left: make streams and stages as they should be now, and tell watchers."""
        if self._network is not None:
            self._network.local_changed()
        else:
            self._deliver(self._watchers.changed(self.local.take_changes()))
        self._stages.follow()

    def _pace_later(self) -> None:
        if self._pacing is None:
            self._pacing = self._loop.call_later(PACE_S, self._pace)

    def _pace(self) -> None:
        """While somebody wants a rate, look now and then how fast publishers send."""
        self._pacing = None
        self._deliver(self.local.follow_rates())
        self._stages.follow_rates()
        rates = self.local.has_rates or self._stages.has_rates
        if self._network is not None:
            self._network.distribution.follow_rates()
            rates = rates or self._network.distribution.has_rates
        alive = {row.info.incarnation for row in self.local.table.all_publishers() if row.alive} if rates else set()
        self.local.paces.keep(alive)
        if rates:
            self._pace_later()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Requests that other nodes are asked for; meanwhile this client's and everybody's requests go on."""
        task = self._loop.create_task(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _subscribe(self, connection: Connection, request: Subscribe, fds: list[Descriptor]) -> None:
        """Other nodes and stages are asked first; meanwhile this client's and everybody's requests go on."""
        async with AsyncExitStack() as stack:
            if self._network is not None:
                await stack.enter_async_context(self._network.prepared(request))
            if request.size is not None and request.role == "subscriber":
                stack.enter_context(self._stages.expecting(request.pattern, asked_of(request)))
                await self._stages.prepare(request.pattern, asked_of(request), request.start)
            if connection.closed:
                return
            try:
                self._do(connection, request, fds)
            except BadMessage as exc:
                self._refuse(connection, exc)

    async def _move(self, connection: Connection, request: Move, fds: list[Descriptor]) -> None:
        try:
            out = self.local.handle(connection.number, request, fds)
        except BadMessage as exc:
            self._refuse(connection, exc)
            return
        moved = self.local.subscription(connection.number, request.subscription)
        if moved is not None:
            if moved.asked.size is not None:
                await self._stages.prepare(moved.pattern, moved.asked, "new")
            if self._network is not None:
                await self._network.delivery.settled(moved.pattern)
        self._deliver(out)

    async def _answer(self, connection: Connection, request_id: int, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            connection.push(Done(id=request_id))
        except RingcastError as exc:
            connection.push(refuse(request_id, exc))
        except TimeoutError:
            slow = BrokenError("the node that was to do it did not answer in time; 'ringcast nodes' shows who is here")
            connection.push(refuse(request_id, slow))

    async def _hold(self, client: int, request: HoldBuffer) -> None:
        if self._network is None:
            raise without_network(request)
        await self._network.buffers.want(client, request)
        if client not in self._connections:  # it left meanwhile
            self._network.buffers.unwant(client)

    async def _destroy(self, network: Network, connection: Connection, request: DestroyTag) -> None:
        """Another node keeps the tag: it decides, and whoever holds it learns of it from the table."""
        keeper = network.keeper(request.name)
        if connection.closed:
            return
        try:
            if keeper is not None:
                await network.destroy(connection.number, request, keeper)
            connection.push(Done(id=request.id))
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))

    def _list_histories(self, connection: Connection, request: ListHistories) -> None:
        try:
            for page in listing.publisher_pages(request.id, self._pulls.publishers(request.tag)):
                connection.push(page)
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))

    def _start_pull(self, connection: Connection, request: PullHistory) -> None:
        if sum(number == connection.number for number in self._pulling.values()) >= MAX_PULLS:
            full = f"{MAX_PULLS} pulls of this program are under way"
            connection.push(refuse(request.id, ResourceLimit(full, "pull again when some are answered")))
            return
        task = self._loop.create_task(self._pull(connection, request))
        self._pulling[task] = connection.number
        task.add_done_callback(lambda done: self._pulling.pop(done, None))

    async def _pull(self, connection: Connection, request: PullHistory) -> None:
        try:
            found = await self._pulls.pull(request.at, request.query)
            if len(found) <= INLINE_BYTES:
                connection.push(inline(request.id, found))
            else:
                answer, memory = await asyncio.to_thread(beside, request.id, found)
                connection.push(answer, (memory,))
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))
        except Exception:
            logger.exception("a pull could not be answered")
            self._broken(connection, "mistake")

    def _greet(self, connection: Connection, hello: Request, fds: list[Descriptor]) -> None:
        if not isinstance(hello, Hello):
            raise BadMessage(f"{type(hello).__name__} before hello")
        if hello.version != PROTOCOL_VERSION:
            reason = (
                f"this daemon speaks control protocol {PROTOCOL_VERSION} and the client {hello.version}; use the same "
                "version of ringcast in both, and start the daemon again"
            )
            connection.push(refuse(hello.id, BadMessage(reason)))
            connection.end()
            return
        if self._name_taken is not None:
            connection.push(refuse(hello.id, self._name_taken))
            connection.end()
            return
        peer = self._peers[connection.number]
        try:
            self.local.join(connection.number, peer.pid, peer.user, hello, fds)
        except BadMessage:
            raise
        except RingcastError as exc:
            connection.push(refuse(hello.id, exc))
            return
        connection.greeted = True
        logger.info("client %d joined: process %d of %s, %s", connection.number, peer.pid, peer.user, hello.program)
        connection.push(Welcome(id=hello.id, node=self._node, daemon_pid=os.getpid()))

    def _status(self, request_id: int) -> Status:
        return Status(
            id=request_id, node=self._node, pid=os.getpid(), version=_version(),
            uptime_s=self._loop.time() - self._started, clients=len(self.local.clients.keys() - {OWN_CLIENT}),
            tags=len(self.local.table), rings=len(self.local.rings), budget_bytes=self.local.budget.total_bytes,
            used_bytes=self.local.budget.used_bytes, bad_messages=self.bad_messages, slow_clients=self.slow_clients,
            lingering=self.local.budget.lingering, until_idle=self._until_idle,
            refusals=self._network.refusals() if self._network is not None else {},
        )  # fmt: skip

    def _nodes(self) -> list[NodeStatus]:
        if self._network is not None:
            return self._network.nodes()
        alone = NodeStatus(
            name=self._node, state="here", me=True, linked=False, incarnation=self.local.table.incarnation,
            control=(), data=(),
        )  # fmt: skip
        return [alone]

    def _deliver(self, out: list[Send]) -> None:
        for client, message, fds in out:
            connection = self._connections.get(client)
            if connection is not None:
                connection.push(message, fds)
        for fanout, outcome in self.local.take_stalled():
            self._watch(fanout, outcome)

    def _watch(self, fanout: FanOut, outcome: Flushed) -> None:
        """Go on with a publisher's announcements when its socket has room; a publisher reads it only when it sends."""
        if fanout.unwatch is not None:
            fanout.unwatch()
        if outcome is Flushed.FULL:
            self._loop.add_writer(fanout.fileno(), self._retry, fanout)
            fanout.unwatch = partial(self._unwatch, fanout.fileno())
        else:
            fanout.unwatch = self._loop.call_later(RETRY_S, self._retry, fanout).cancel

    def _unwatch(self, fd: int) -> None:
        self._loop.remove_writer(fd)

    def _retry(self, fanout: FanOut) -> None:
        if fanout.unwatch is not None:
            fanout.unwatch()
            fanout.unwatch = None
        self.local.retry(fanout)
        self._deliver([])

    # ------------------------------------------------------------------ this node's name

    def _named(self, what: NameConflict | NameCleared) -> None:
        """Serve nobody while an older daemon has this one's name. Clients attach again by themselves afterwards, as
        they do with a daemon that was restarted; until then their rings go on working."""
        if isinstance(what, NameCleared):
            self._name_taken = None
            logger.warning("this daemon is the only one called %r now, and serves again", self._node)
        elif what.mine:
            self._name_taken = NameTaken(self._node, ", ".join(what.holder.control) or "an unknown address")
            for connection in list(self._connections.values()):
                self._broken(connection, "name taken")

    # ------------------------------------------------------------------ departures

    def _broken(self, connection: Connection, reason: str) -> None:
        """Stop serving a connection. What it held is withdrawn afterwards: this may be in the middle of a delivery."""
        if connection.closed:
            return
        connection.close()
        if reason == "slow":
            self.slow_clients += 1
            logger.warning("client %d does not read its notices; disconnected", connection.number)
        self._loop.call_soon(self._departed, connection, reason)

    def _departed(self, connection: Connection, reason: str) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        peer = self._peers.pop(connection.number)
        logger.info("client %d left: %s", connection.number, reason)
        self._watchers.leave(connection.number)
        self._deliver(self.local.leave(connection.number))
        self._stages.client_gone(connection.number)
        if self._network is not None:
            self._network.buffers.unwant(connection.number)
        self._follow()
        if (reason == "bye" or not connection.greeted) and all(other.pid != peer.pid for other in self._peers.values()):
            self._processes.release(peer.pid)
        if not self._connections:
            self._door.nobody_inside()

    def _process_died(self, pid: int) -> None:
        for number in [number for number, peer in self._peers.items() if peer.pid == pid]:
            connection = self._connections[number]
            connection.close()
            self._departed(connection, "died")
        self.local.process_died(pid)

    def _close(self) -> None:
        self._door.close()
        for connection in self._connections.values():
            connection.close()
        self._processes.close()
        self.local.close()


def _version() -> str:
    try:
        return metadata.version("ringcast")
    except metadata.PackageNotFoundError:
        return "not installed"
