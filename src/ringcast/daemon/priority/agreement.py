"""Priorities that concern several nodes: their kernels are asked before one is stored, and afterwards it is waited
until the streams are as it says.

Invariant: a schedule or a bandwidth that some node's kernel refuses is not stored, or taken back when the kernel
refuses it only once all channels want it, or when a channel would lose what it had reserved. So every channel keeps
what it had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ringcast.control import service
from ringcast.control.requests import SetChannel
from ringcast.control.service import Grant, Granted, Settle, Settled
from ringcast.control.status import ChannelStatus
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.streams.resolving import resolved
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, BrokenError, QosMismatch
from ringcast.model import priority, schedule
from ringcast.model.place import Setting
from ringcast.model.priority import Priority
from ringcast.transport.urgent import scheduling
from ringcast.transport.urgent.caution import CAUTION
from ringcast.transport.urgent.links import LINKS, Refused

REQUEST_TIMEOUT_S = 2.0
HEARD_S = 1.0
"""How long a setting may take to reach a node of the mesh before that node stops waiting for it."""
LOOK_S = 0.002
GONE_S = 0.5
"""How long channels may take to give up what others that take their place are to have."""
LOOK_AGAIN_S = 0.02
MAX_REASON = 255


class Agreement:
    """`settled` returns when this node's streams of a tag are as they should be; `host_of` is where a node receives;
    `refused` says why a tag's channels here do not have what they are to have of a priority, or had."""

    def __init__(
        self, table: TagTable, mesh: ServingMesh, settled: Callable[[str], Awaitable[None]],
        host_of: Callable[[str], Awaitable[str]], refused: Callable[[str, Priority], list[str]],
    ) -> None:  # fmt: skip
        self._table = table
        self._mesh = mesh
        self._settled = settled
        self._host_of = host_of
        self._refused = refused
        mesh.serve(service.GRANT, self._grant)
        mesh.serve(service.SETTLE, self._settle)

    async def check(self, request: SetChannel) -> list[str]:
        """Whether all nodes that the setting concerns grant its schedule and its bandwidth; warnings about it. Raises
        QosMismatch, BrokenError, TimeoutError."""
        stored = self._stored(request.tag, request.node)
        receivers = self._receivers(request)
        senders = {row.owner for row in self._table.publishers(request.tag) if row.alive}
        words = priority.read(request.urgency.applied(stored.text))
        if words.bandwidth and (words.bandwidth, words.marking) != (stored.bandwidth, stored.marking):
            for sender in senders:
                to = sorted(receivers - {sender})
                asked = Grant(tag=request.tag, priority=words.text, to=to)
                await self._ask([sender] if to else [], service.GRANT, asked)
        if not request.sched or request.sched == stored.sched:
            return []
        # Where nobody receives it on another node no thread is made; then this node says whether it could be.
        concerned = receivers | senders if any(receivers - {sender} for sender in senders) else {self._table.node}
        answers = await self._ask(concerned, service.GRANT, Grant(tag=request.tag, sched=request.sched))
        return [text for answer in answers for text in service.decode_untrusted(answer, Granted).warnings]

    async def settle(self, request: SetChannel, words: str) -> list[str]:
        """Returns when the streams to the nodes concerned come as the setting, stored by now, says; or after a moment.
        What it returns are reasons why kernels refused it after all: single channels fitted, and all do not."""
        own = Priority(sched=request.sched or "", bandwidth=request.bandwidth or "")
        asked = Settle(tag=request.tag, key=request.node, priority=words, checked=own.text)
        receivers = self._receivers(request)
        senders = {row.owner for row in self._table.publishers(request.tag) if row.alive} - receivers
        try:
            answers = await self._ask(receivers, service.SETTLE, asked)
            answers += await self._ask(senders, service.SETTLE, asked) if receivers else []
        except (TimeoutError, BrokenError):  # it is stored: that node follows when it can
            return []
        said = [reason for answer in answers for reason in service.decode_untrusted(answer, Settled).refused]
        return list(dict.fromkeys(said))

    def _receivers(self, request: SetChannel) -> set[str]:
        nodes = {row.owner for row in self._table.subscribers(request.tag)}
        return nodes & {request.node.partition("#")[0]} if request.node else nodes

    async def _ask(self, nodes: Iterable[str], name: str, request: Grant | Settle) -> list[bytes]:
        payload = service.encode(request)
        asked = [self._mesh.request(node, name, payload, REQUEST_TIMEOUT_S) for node in sorted(nodes)]
        return list(await asyncio.gather(*asked))

    async def _grant(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, Grant)
        try:
            wanted = schedule.read(request.sched or schedule.OTHER)
            words = priority.read(request.priority)
        except ValueError as exc:
            raise BadMessage(str(exc)) from exc
        publishers = {row.info.incarnation for row in self._table.publishers(request.tag)} if request.tag else set()
        await self._check_links(words, request.to, publishers)
        scheduling.check(request.sched, self._table.node, publishers)
        said = CAUTION.about(wanted, f"node {self._table.node!r}")
        return service.encode(Granted(warnings=[said] if said else []))

    async def _check_links(self, words: Priority, to: list[str], publishers: set[int]) -> None:
        """Whether the links to these nodes have room for what is to be reserved. Raises QosMismatch."""
        if not words.bandwidth:
            return
        for host in sorted({await resolved(await self._host_of(node)) for node in to}):
            try:
                replaced = {(publisher, host) for publisher in publishers}
                LINKS.check(host, words.marking.dscp, words.bandwidth_bps, replaced)
            except Refused as exc:
                what = f"{words.bandwidth} of the links of node {self._table.node!r}"
                remedy = "choose less, or let the daemon run with CAP_NET_ADMIN (docs/priorities.md)"
                raise QosMismatch(what, str(exc), remedy) from exc

    async def _settle(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, Settle)
        loop = asyncio.get_running_loop()
        until = loop.time() + HEARD_S
        while self._stored(request.tag, request.key).text != request.priority and loop.time() < until:
            await asyncio.sleep(LOOK_S)
        await self._settled(request.tag)
        words, until = priority.read(request.checked), loop.time() + GONE_S
        while (refused := self._refused(request.tag, words)) and loop.time() < until:
            await asyncio.sleep(LOOK_AGAIN_S)
        return service.encode(Settled(refused=[reason[:MAX_REASON] for reason in refused]))

    def _stored(self, tag: str, key: str) -> Priority:
        row = self._table.tag(tag)
        return priority.read(row.settings.get(key, Setting()).priority if row is not None else "")


def refused(rows: Iterable[ChannelStatus], words: Priority) -> list[str]:
    """Why channels do not have the schedule or the bandwidth of these words, or have lost what those had whose place
    they took."""
    found = []
    for row in rows:
        has, asked = row.in_force, priority.read(row.priority)
        if has is None or not has.refused:
            continue
        no_schedule = words.sched and asked.sched == words.sched and has.sched != words.sched
        alike = row.direction == "out" and asked.bandwidth == words.bandwidth
        no_bandwidth = words.bandwidth and alike and has.bandwidth != words.bandwidth
        if no_schedule or no_bandwidth or has.lost:
            found.append(has.lost or has.refused)
    return list(dict.fromkeys(found))
