"""Requests that one daemon makes of another by name, with opaque payloads, many at once over one link.

Invariants: every request ends exactly once, with its reply, the error that the other side raised, BrokenError when the
link goes, or TimeoutError; what a link can make this side hold is bounded, and more is refused; a handler's mistake
costs its request only. Does not know which services there are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

import msgspec

from ringcast.control.answers import Refused
from ringcast.control.limits import PEER_REQUESTS_PER_S
from ringcast.control.peering import (
    CHUNK_BYTES,
    MAX_PAYLOAD_BYTES,
    Call,
    Cancel,
    Chunk,
    Failure,
    Reply,
    Service,
    encode_frame,
)
from ringcast.control.refusal import refusal, refuse
from ringcast.daemon.access.pace import Bucket
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.daemon.observe.complaints import Complaints
from ringcast.errors import BadMessage, BrokenError, MessageTooLarge, QosMismatch, ResourceLimit, RingcastError

logger = logging.getLogger("ringcast.mesh")


class LinkLost(BrokenError):
    """The request may have been done, or not."""


Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Is given the name of the node that asks and what it sent; returns the reply, or raises a RingcastError."""

Gate = Callable[[str, str, bytes], None]
"""Is given the name of the node that asks, the service and what it sent, before the handler; raises a RingcastError for
what that node may not ask."""

asking: ContextVar[PeerLink | None] = ContextVar("asking", default=None)
"""While a handler runs, the link by which it was asked: what a node says of itself may be said by anybody."""

REST_S = 0.02
MAX_CALLS = 256
"""Requests of one link that are being served."""
MAX_INBOUND_BYTES = 2 * MAX_PAYLOAD_BYTES
"""Of requests, or replies, of one link that are not complete."""


class _Inbound:
    """A payload that arrives in pieces."""

    __slots__ = ("data", "service", "size", "task")

    def __init__(self, size: int, service: str = "") -> None:
        self.size = size
        self.service = service
        self.data = bytearray()
        self.task: asyncio.Task[None] | None = None

    def add(self, piece: bytes) -> bool:
        """Whether it is complete. Raises BadMessage."""
        self.data += piece
        if len(self.data) > self.size:
            raise BadMessage(f"{len(self.data)} bytes of a payload of {self.size}")
        return len(self.data) == self.size


class Services:
    """`on_done(link)` is called when a request on a link has ended."""

    def __init__(self, background: Background, on_done: Callable[[PeerLink], None]) -> None:
        self.handlers: dict[str, Handler] = {}
        self.gate: Gate = lambda node, service, payload: None
        self._complaints = Complaints(logger)
        self._background = background
        self._on_done = on_done
        self._numbers = 0
        self._waiting: dict[int, dict[int, tuple[asyncio.Future[bytes], _Inbound | None]]] = {}  # by link
        self._turns: dict[int, asyncio.Semaphore] = {}  # by link
        self._serving: dict[int, dict[int, _Inbound]] = {}
        self._paces: dict[int, Bucket] = {}  # by link
        self.throttled = 0
        """How often a peer that asked too fast was not read for a moment."""

    def close(self) -> None:
        self._complaints.close()

    def busy(self, link: PeerLink) -> bool:
        return bool(self._waiting.get(link.number) or self._serving.get(link.number))

    async def call_here(self, node: str, service: str, payload: bytes) -> bytes:
        """Ask this node itself."""
        if service not in self.handlers:
            raise _unknown(service)
        return await self.handlers[service](node, payload)

    # ------------------------------------------------------------------ asking

    async def call(self, link: PeerLink, service: str, payload: bytes) -> bytes:
        """Raises what the other side raised, BrokenError; ends when cancelled. Time limits are the caller's."""
        async with self._turns.setdefault(link.number, asyncio.Semaphore(MAX_CALLS)):
            await link.room_for(len(payload))
            if link.closing:
                raise _broken(link)
            return await self._call(link, service, payload)

    async def _call(self, link: PeerLink, service: str, payload: bytes) -> bytes:
        self._numbers += 1
        number = self._numbers
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(link.number, {})
        waiting[number] = (future, None)
        head = Call(id=number, service=service, size=len(payload), piece=payload[:CHUNK_BYTES])
        link.send_payload(_frames(head, payload, number, reply=False, until=future), len(payload))
        try:
            return await future
        except asyncio.CancelledError:
            link.send(Cancel(id=number))
            raise
        finally:
            waiting.pop(number, None)
            self._on_done(link)

    # ------------------------------------------------------------------ what arrives

    def received(self, link: PeerLink, message: Service) -> None:
        """Raises BadMessage when the other side does not keep to the protocol."""
        if isinstance(message, Call):
            self._called(link, message)
        elif isinstance(message, Chunk) and not message.reply:
            inbound = self._serving.get(link.number, {}).get(message.id)
            if inbound is not None and inbound.task is None and inbound.add(message.piece):
                self._start(link, message.id, inbound)
        elif isinstance(message, Cancel):
            inbound = self._serving.get(link.number, {}).pop(message.id, None)
            if inbound is not None and inbound.task is not None:
                inbound.task.cancel()
        else:
            self._answered(link, message)

    def link_down(self, link: PeerLink) -> None:
        self._turns.pop(link.number, None)
        self._paces.pop(link.number, None)
        for future, _ in self._waiting.pop(link.number, {}).values():
            if not future.done():
                future.set_exception(_broken(link))
        for inbound in self._serving.pop(link.number, {}).values():
            if inbound.task is not None:
                inbound.task.cancel()

    def _answered(self, link: PeerLink, message: Reply | Chunk | Failure) -> None:
        waiting = self._waiting.get(link.number, {})
        future, inbound = waiting.get(message.id, (None, None))
        if future is None or future.done():
            return  # nobody waits any more
        if isinstance(message, Failure):
            future.set_exception(refusal(Refused(id=message.id, error=message.error, fields=message.fields)))
            return
        if isinstance(message, Reply):
            if inbound is not None:
                raise BadMessage(f"a second reply to request {message.id}")
            inbound = _Inbound(message.size)
            waiting[message.id] = (future, inbound)
        elif inbound is None:
            raise BadMessage(f"a piece of a reply to request {message.id} before its beginning")
        if inbound.add(message.piece):
            future.set_result(bytes(inbound.data))

    # ------------------------------------------------------------------ serving

    def _called(self, link: PeerLink, message: Call) -> None:
        self._pace(link)
        serving = self._serving.setdefault(link.number, {})
        if message.id in serving:
            raise BadMessage(f"request {message.id} is being served")
        pending = sum(inbound.size for inbound in serving.values() if inbound.task is None)
        if message.service not in self.handlers:
            self._fail(link, message.id, _unknown(message.service))
        elif len(serving) >= MAX_CALLS or pending + message.size > MAX_INBOUND_BYTES:
            full = f"{len(serving)} requests and {pending} bytes of this node are waiting already"
            self._fail(link, message.id, ResourceLimit(full, "ask again when some are answered"))
        else:
            inbound = serving[message.id] = _Inbound(message.size, message.service)
            if inbound.add(message.piece):
                self._start(link, message.id, inbound)

    def _pace(self, link: PeerLink) -> None:
        now_s = asyncio.get_running_loop().time()
        pace = self._paces.get(link.number)
        if pace is None:
            pace = self._paces[link.number] = Bucket(PEER_REQUESTS_PER_S, 5 * PEER_REQUESTS_PER_S, now_s)
        if pace.wait_s(now_s):
            self.throttled += 1
            link.rest(REST_S)

    def _start(self, link: PeerLink, number: int, inbound: _Inbound) -> None:
        inbound.task = self._background.start(f"serve {inbound.service}", self._serve(link, number, inbound))

    async def _serve(self, link: PeerLink, number: int, inbound: _Inbound) -> None:
        node = link.peer.name if link.peer else ""
        asking.set(link)
        try:
            payload, inbound.data = bytes(inbound.data), bytearray()
            self.gate(node, inbound.service, payload)
            reply = await self.handlers[inbound.service](node, payload)
            if len(reply) > MAX_PAYLOAD_BYTES:
                raise MessageTooLarge(len(reply), MAX_PAYLOAD_BYTES)
            await link.room_for(len(reply))
            head = Reply(id=number, size=len(reply), piece=reply[:CHUNK_BYTES])
            link.send_payload(_frames(head, reply, number, reply=True), len(reply))
        except RingcastError as exc:
            self._fail(link, number, exc)
        except Exception:
            self._complaints.exception(inbound.service, "service %r failed for node %r", inbound.service, node)
            self._fail(link, number, RingcastError(f"service {inbound.service!r} failed; see that node's log"))
        finally:
            self._serving.get(link.number, {}).pop(number, None)
            self._on_done(link)

    def _fail(self, link: PeerLink, number: int, error: RingcastError) -> None:
        try:
            refused = refuse(number, error)
            failure = Failure(id=number, error=refused.error, fields=refused.fields)
            msgspec.msgpack.encode(failure)
        except (AttributeError, TypeError, OverflowError):  # an error that cannot be built again from its fields
            failure = Failure(id=number, error="RingcastError", fields={"said": str(error)[:1000]})
        link.send(failure)


def _frames(
    head: Call | Reply, payload: bytes, number: int, *, reply: bool, until: asyncio.Future[bytes] | None = None
) -> Iterator[bytes]:
    if until is None or not until.done():
        yield encode_frame(head)
    for at in range(CHUNK_BYTES, len(payload), CHUNK_BYTES):
        if until is not None and until.done():
            return
        yield encode_frame(Chunk(id=number, reply=reply, piece=payload[at : at + CHUNK_BYTES]))


def _unknown(service: str) -> QosMismatch:
    remedy = "use the same version of ringcast on all nodes"
    return QosMismatch(f"service {service!r}", "the node asked has no such service", remedy)


def _broken(link: PeerLink) -> LinkLost:
    node = link.peer.name if link.peer else link.address
    return LinkLost(f"the link with node {node!r} went down; ask again when 'ringcast nodes' shows it")
