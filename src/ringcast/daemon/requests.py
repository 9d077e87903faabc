"""What a client asks for, and who answers it: this node at once, or others first.

Invariants: every request is answered once, or its connection has ended; what other nodes are asked for holds up neither
this client's other requests nor anybody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from ringcast.control.answers import Done
from ringcast.control.descriptor import Descriptor, expect
from ringcast.control.refusal import refuse
from ringcast.control.requests import (
    DestroyTag,
    DropBuffer,
    HoldBuffer,
    IntakeDown,
    IntakeUp,
    ListChannels,
    ListHistories,
    ListNodes,
    LoadModel,
    Move,
    ObserveMesh,
    PullHistory,
    ReportRefusal,
    Request,
    SetChannel,
    StageDown,
    StageUp,
    Subscribe,
    Unwatch,
    Watch,
)
from ringcast.control.status import NodeStatus
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.access.limits import Limits
from ringcast.daemon.background import Background
from ringcast.daemon.clients.connection import Connection
from ringcast.daemon.clients.local import Local
from ringcast.daemon.clients.subscribers import options_of
from ringcast.daemon.effects import Send
from ringcast.daemon.observe import listing
from ringcast.daemon.observe.watchers import Watchers
from ringcast.daemon.pull.buffers import without_network
from ringcast.daemon.pull.pulls import INLINE_BYTES, Pulls, beside, inline
from ringcast.daemon.rings.registrations import Expected
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.streams import routes
from ringcast.errors import (
    AdmissionRefused,
    BadMessage,
    BrokenError,
    NotAllowed,
    QosMismatch,
    ResourceLimit,
    RingcastError,
)

if TYPE_CHECKING:
    from ringcast.daemon.network import Network

MAX_PULLS = 32
"""Of one client, under way at once."""


class Requests:
    """`on_bad` hears of a request that breaks the protocol, `on_mistake` of one that we failed to answer, `on_done`
    when something may have changed."""

    def __init__(
        self, local: Local, network: Network | None, stages: Stages, watchers: Watchers,
        deliver: Callable[[list[Send]], None], background: Background, *,
        on_bad: Callable[[Connection, BadMessage], None], on_mistake: Callable[[Connection, Request], None],
        on_done: Callable[[], None], audit: Audit, limits: Limits,
    ) -> None:  # fmt: skip
        self._local = local
        self._network = network
        self._stages = stages
        self._watchers = watchers
        self._deliver = deliver
        self._on_bad = on_bad
        self._on_mistake = on_mistake
        self._on_done = on_done
        self._background = background
        self._audit = audit
        self._limits = limits
        self._pulls = network.pulls if network is not None else Pulls(local, None)
        self._pulling: Counter[int] = Counter()

    def close(self) -> None:
        self._pulls.close()

    def allows(self, connection: Connection, request: Request) -> bool:
        """Whether the client has the right, and takes no more than it may; if not it is told."""
        client = self._local.clients[connection.number]
        try:
            self._local.rights.check(client.who, request, lambda name: self._local.table.tag(name) is not None)
            self._limits.check(client, request)
        except ResourceLimit as exc:
            connection.push(refuse(request.id, exc))
            return False
        except NotAllowed as exc:
            if client.who is not None:
                self._audit.client(client.who, client.pid, exc)
            connection.push(refuse(request.id, exc))
            return False
        return True

    def handle(self, connection: Connection, request: Request, fds: list[Descriptor]) -> None:
        """Raises BadMessage when the client does not keep to the protocol."""
        if isinstance(request, ListNodes):
            for page in listing.node_pages(request.id, self._nodes(request.clock)):
                connection.push(page)
        elif isinstance(request, ListChannels):
            self._begin(connection, request, self._list_channels(connection, request))
        elif isinstance(request, ReportRefusal):
            self._audit.reported(self._local.clients[connection.number], request)
            connection.push(Done(id=request.id))
        elif isinstance(request, ObserveMesh):
            self._begin(connection, request, self._observe(connection, request))
        elif isinstance(request, LoadModel):
            self._begin(connection, request, self._answer(connection, request.id, self._load(request, fds)))
        elif isinstance(request, ListHistories):
            self._list_histories(connection, request)
        elif isinstance(request, PullHistory):
            self._start_pull(connection, request)
        elif isinstance(request, Watch | Unwatch):
            self._deliver(self._watchers.handle(connection.number, request))
        elif self._network is not None and isinstance(request, DestroyTag) and self._network.tags.keeper(request.name):
            self._begin(connection, request, self._destroy(self._network, connection, request))
        elif isinstance(request, StageUp | StageDown):
            self._stages.answered(connection.number, request, fds)
            connection.push(Done(id=request.id))
        elif isinstance(request, IntakeUp | IntakeDown):
            if self._network is not None:
                self._network.handing.answered(connection.number, request, fds)
            connection.push(Done(id=request.id))
        elif isinstance(request, Subscribe) and (self._network is not None or request.size is not None):
            try:
                routes.check_options(
                    options_of(request), self._local.table.tag(request.pattern), self._local.table.node
                )
                admitted = self._local.admit(request)
            except (QosMismatch, AdmissionRefused) as exc:
                connection.push(refuse(request.id, exc))
                return
            assert isinstance(admitted, Subscribe)
            self._begin(connection, request, self._subscribe(connection, admitted, fds))
        elif isinstance(request, Move):
            self._begin(connection, request, self._move(connection, request, fds))
        elif self._network is not None and isinstance(request, SetChannel):
            self._begin(
                connection, request, self._answer(connection, request.id, self._network.tags.set_channel(request))
            )
        elif isinstance(request, HoldBuffer):
            self._begin(
                connection, request, self._answer(connection, request.id, self._hold(connection.number, request))
            )
        elif isinstance(request, DropBuffer):
            if self._network is not None:
                self._network.buffers.unwant(connection.number, request.buffer)
            self._local.end_pull(connection.number, request.buffer)
            connection.push(Done(id=request.id))
            self._on_done()
        else:
            self._do(connection, request, fds)

    def _do(self, connection: Connection, request: Request, fds: list[Descriptor]) -> None:
        self._deliver(self._local.handle(connection.number, request, fds))
        self._on_done()

    def _begin(self, connection: Connection, request: Request, work: Coroutine[Any, Any, None]) -> None:
        """Requests that other nodes are asked for; meanwhile this client's and everybody's requests go on."""
        self._background.start(type(request).__name__, self._watched(connection, request, work))

    async def _watched(self, connection: Connection, request: Request, work: Coroutine[Any, Any, None]) -> None:
        """Whatever goes wrong, the client hears of it at once."""
        try:
            await work
        except Exception:
            self._on_mistake(connection, request)

    async def _subscribe(self, connection: Connection, request: Subscribe, fds: list[Descriptor]) -> None:
        """Other nodes and stages are asked first; meanwhile this client's and everybody's requests go on."""
        options = options_of(request)
        with ExitStack() as stack:
            stack.callback(self.settle)
            if request.role == "subscriber":
                client = self._local.clients.get(connection.number)
                expected = Expected(request.pattern, options, client, request.subscription)
                stack.enter_context(self._local.sharing.expecting(expected))
                if self._network is not None:
                    await self._network.incoming.prepare(request.pattern, options, request.start)
                if request.size is not None:
                    await self._stages.prepare(request.pattern, options, request.start)
            if connection.closed:
                return
            try:
                self._do(connection, request, fds)
            except BadMessage as exc:
                self._on_bad(connection, exc)

    def settle(self) -> None:
        """Make streams as they are wanted now: end what was prepared for a subscription that did not come about."""
        if self._network is not None:
            self._network.incoming.follow_soon()
        self._stages.follow()

    async def _move(self, connection: Connection, request: Move, fds: list[Descriptor]) -> None:
        try:
            out = self._local.handle(connection.number, request, fds)
        except BadMessage as exc:
            self._on_bad(connection, exc)
            return
        moved = self._local.subscription(connection.number, request.subscription)
        if moved is not None:
            if moved.options.size is not None:
                await self._stages.prepare(moved.pattern, moved.options, "new")
            if self._network is not None:
                await self._network.incoming.settled(moved.pattern)
        self._deliver(out)

    async def _answer(
        self, connection: Connection, request_id: int, work: Coroutine[Any, Any, list[str] | None]
    ) -> None:
        try:
            warnings = await work
            connection.push(Done(id=request_id, warnings=warnings or []))
        except RingcastError as exc:
            connection.push(refuse(request_id, exc))
        except TimeoutError:
            slow = BrokenError("the node that was to do it did not answer in time; 'ringcast nodes' shows who is here")
            connection.push(refuse(request_id, slow))

    async def _load(self, request: LoadModel, fds: list[Descriptor]) -> list[str]:
        if self._network is None:
            raise BrokenError(
                "this daemon has no network, so it chooses no transport; start it with --listen HOST:PORT"
            )
        expect(fds, 1, request)
        return await self._network.load_model(fds[0].fileno())

    async def _hold(self, client: int, request: HoldBuffer) -> None:
        if self._network is None and request.depth:
            raise without_network(request)
        self._local.declare_pull(client, request)
        self._on_done()
        if self._network is None or not request.depth:
            return
        await self._network.buffers.want(client, request)
        if client not in self._local.clients:  # it left meanwhile
            self._network.buffers.unwant(client)

    async def _destroy(self, network: Network, connection: Connection, request: DestroyTag) -> None:
        """Another node keeps the tag: it decides, and whoever holds it learns of it from the table."""
        keeper = network.tags.keeper(request.name)
        if connection.closed:
            return
        try:
            if keeper is not None:
                await network.tags.destroy(connection.number, request, keeper)
            connection.push(Done(id=request.id))
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))

    async def _observe(self, connection: Connection, request: ObserveMesh) -> None:
        if self._network is None:
            alone = "this daemon has no network, so there is nothing to place; start it with --listen HOST:PORT"
            connection.push(refuse(request.id, BrokenError(alone)))
            return
        observing = self._network.placing.observing
        for page in listing.observation_pages(request.id, await observing.observe(measured=request.measured)):
            connection.push(page)

    async def _list_channels(self, connection: Connection, request: ListChannels) -> None:
        channels, dropped = await self._network.status(why=request.why) if self._network is not None else ([], {})
        for page in listing.channel_pages(request.id, channels, dropped):
            connection.push(page)

    def _list_histories(self, connection: Connection, request: ListHistories) -> None:
        try:
            for page in listing.publisher_pages(request.id, self._pulls.publishers(request.tag)):
                connection.push(page)
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))

    def _start_pull(self, connection: Connection, request: PullHistory) -> None:
        if self._pulling[connection.number] >= MAX_PULLS:
            full = f"{MAX_PULLS} pulls of this program are under way"
            connection.push(refuse(request.id, ResourceLimit(full, "pull again when some are answered")))
            return
        self._pulling[connection.number] += 1
        self._background.start("pull", self._pull(connection, request), lambda: self._pulled(connection.number))

    def _pulled(self, client: int) -> None:
        self._pulling -= Counter([client])

    async def _pull(self, connection: Connection, request: PullHistory) -> None:
        try:
            found = await self._pulls.pull(request.at, request.query)
            if len(found) <= INLINE_BYTES:
                connection.push(inline(request.id, found))
            else:
                answer, memory = await self._pulls.in_thread(partial(beside, request.id, found))
                connection.push(answer, (memory,))
        except RingcastError as exc:
            connection.push(refuse(request.id, exc))
        except Exception:
            self._on_mistake(connection, request)

    def _nodes(self, clock: str) -> list[NodeStatus]:
        if self._network is not None:
            self._network.clocks.asked(clock)
            return self._network.nodes()
        alone = NodeStatus(
            name=self._local.table.node, state="here", me=True, linked=False, incarnation=self._local.table.incarnation,
            control=(), data=(),
        )  # fmt: skip
        return [alone]
