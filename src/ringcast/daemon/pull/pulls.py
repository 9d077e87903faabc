"""The paper's pull manager: what clients and other nodes ask of histories, answered from rings here or by other nodes.

A client's question goes to where the rings are: the nodes of the tag's publishers, a named node, or this node's
mirrors. One node is asked when one holds all that is meant; of several the newest messages are compared first, without
their payloads. Invariants: what takes long is read in a thread, so neither the daemon nor publishers wait for a pull;
an answer is handed on as it came. `ringcast.daemon.pull.reading` reads the rings.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from ringcast import _core
from ringcast.control import service
from ringcast.control.answers import HistoryPulled
from ringcast.control.descriptor import Descriptor
from ringcast.control.service import Pull, PullAnswer
from ringcast.control.status import PublisherStatus
from ringcast.daemon.clients.local import Local
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.pull import translation
from ringcast.daemon.pull.reading import Held, limit_of, nth_newest, read, step_of, whose
from ringcast.daemon.pull.scaler_process import PullScaler
from ringcast.daemon.rings.ring import Ring
from ringcast.errors import BrokenError, CorruptRing, Empty, HistoryError, Overwritten, ResourceLimit
from ringcast.model.tag import check_name

logger = logging.getLogger("ringcast.daemon")

PATIENCE_S = 20.0
ONE_OF_SEVERAL_S = 4.0
"""How long to wait for a node when others have answered."""
INLINE_BYTES = 32 * 1024
"""Longer answers go to clients in memory of their own."""
QUICK_BYTES = 4 * 1024 * 1024
READERS = 4
"""Threads that read rings for pulls. Nothing else runs there, so nothing else can keep a pull waiting."""
_ATTEMPTS = 3
_NUMBERED = ("at", "range", "bounds")
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


_T = TypeVar("_T")


class Pulls:
    """`mesh` is None for a daemon without a network. `clock_of` knows other nodes' clocks; None where nothing is to be
    translated."""

    def __init__(
        self, local: Local, mesh: Mesh | None, clock_of: Callable[[str], _core.TimeBase | None] = lambda node: None
    ) -> None:
        self._local = local
        self._mesh = mesh
        self._clock_of = clock_of
        self._pull_scaler = PullScaler()
        self._readers = ThreadPoolExecutor(READERS, "ringcast-pull")

    def close(self) -> None:
        self._pull_scaler.close()
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Do what takes longer than the loop may wait. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    # ------------------------------------------------------------------ for clients

    def publishers(self, tag: str) -> list[PublisherStatus]:
        """Whose messages can be had at publishers' nodes. Counters are known of this node's only."""
        own = [ring.status() for ring in self._local.rings.matching(check_name(tag)) if not ring.foreign]
        table = self._local.table
        others = [
            PublisherStatus(info=row.info, alive=row.alive, counters={}, last_sent_ns=0, declared=row.declared)
            for row in table.publishers(tag)
            if row.owner != table.node
        ]
        return own + others

    async def pull(self, at: str, query: Pull) -> bytes:
        """A PullAnswer, encoded. Raises what reading it raised, BrokenError (a node is not there), BadTagName."""
        check_name(query.tag)
        try:
            async with asyncio.timeout(PATIENCE_S):
                if at == "publisher":
                    return await self._at_publishers(replace(query, held="own"))
                if at == "subscriber":
                    return await self._ask(self._local.table.node, replace(query, held="mirrors"))
                return await self._ask(at.removeprefix("node:"), replace(query, held="all"))
        except TimeoutError as exc:
            raise BrokenError(f"no answer to a pull from {query.tag!r} within {PATIENCE_S:g} s") from exc

    async def _at_publishers(self, query: Pull) -> bytes:
        rows = self._local.table.publishers(query.tag)
        if query.publisher:
            rows = [row for row in rows if row.info.incarnation == query.publisher]
            if not rows:
                raise BrokenError(
                    f"publisher {query.publisher:x} of {query.tag!r} is gone and so is its ring, or its node; "
                    "'ringcast tags' and 'ringcast nodes' show what there is"
                )
        if query.kind in _NUMBERED:
            info = whose(query.tag, ((row.info, row.alive) for row in rows))
            return await self._ask(info.node, replace(query, publisher=info.incarnation))
        nodes = sorted({row.owner for row in rows})
        if not nodes:
            raise Empty(f"nobody published on {query.tag!r}, so there is no history")
        if len(nodes) == 1:
            return await self._ask(nodes[0], query)
        return await self._compared(nodes, query)

    async def _compared(self, nodes: Sequence[str], query: Pull) -> bytes:
        """The same over several nodes. The answer names those that gave none, because they went away or stand still."""
        silent: set[str] = set()
        if query.kind == "span":
            answers = await self._ask_all(nodes, query, silent)
            return service.encode(
                PullAnswer(
                    publishers=[info for answer in answers for info in answer.publishers],
                    bounds=[bounds for answer in answers for bounds in answer.bounds],
                    unanswered=sorted(silent),
                )
            )
        back = query.first if query.kind == "latest" else 0
        heads = replace(query, kind="heads", first=back + 1, last=query.last if query.kind == "before" else 0)
        for _ in range(_ATTEMPTS + len(nodes)):
            answers = await self._ask_all([node for node in nodes if node not in silent], heads, silent)
            owners = {info.incarnation: info.node for answer in answers for info in answer.publishers}
            head = nth_newest((head for answer in answers for head in answer.heads), back)
            if head.incarnation not in owners:
                raise BrokenError(f"an answer to a pull from {query.tag!r} does not say whose it is")
            # By its number it is the same message that was chosen, whatever has been sent since.
            chosen = replace(query, kind="at", first=head.seq, last=0, publisher=head.incarnation)
            try:
                found = await self._ask(owners[head.incarnation], chosen)
            except Overwritten:
                continue
            except BrokenError:
                silent.add(owners[head.incarnation])
                continue
            return _with_silent(found, silent)
        raise Empty("publishers write faster than their histories can be read; use a larger depth")

    async def _ask_all(self, nodes: Sequence[str], query: Pull, silent: set[str]) -> list[PullAnswer]:
        """Their answers; those who gave none are added to `silent`. Raises when nobody has anything."""
        found = await asyncio.gather(*(self._ask_soon(node, query) for node in nodes), return_exceptions=True)
        answers: list[PullAnswer] = []
        failed: BaseException | None = None
        for node, one in zip(nodes, found, strict=True):
            if isinstance(one, bytes):
                answers.append(service.decode_untrusted(one, PullAnswer))
                continue
            if not isinstance(one, HistoryError | BrokenError):
                raise one
            if isinstance(one, BrokenError):
                silent.add(node)
            if failed is None or isinstance(one, BrokenError):
                failed = one
        if not answers and (failed is not None or silent):
            raise failed or BrokenError(f"no node with a publisher of {query.tag!r} answers")
        return answers

    async def _ask_soon(self, node: str, query: Pull) -> bytes:
        """One of several: the others' answers do not wait for it for long."""
        try:
            async with asyncio.timeout(ONE_OF_SEVERAL_S):
                return await self._ask(node, query)
        except TimeoutError as exc:
            raise BrokenError(f"node {node!r} does not answer a pull from {query.tag!r}") from exc

    async def _ask(self, node: str, query: Pull) -> bytes:
        if node == self._local.table.node:
            return await self.answer(query)
        if self._mesh is None:
            raise BrokenError(f"node {node!r} is not in the mesh: this node's daemon has no network")
        clock = self._clock_of(node)
        if clock is None:
            return await self._mesh.request(node, service.PULL, service.encode(query), PATIENCE_S)
        asked = service.encode(translation.query(query, clock))
        answer = await self._mesh.request(node, service.PULL, asked, PATIENCE_S)
        return await self.in_thread(partial(translation.answer, answer, clock))

    # ------------------------------------------------------------------ for other nodes

    async def serve(self, node: str, payload: bytes) -> bytes:
        """What another node asks, as the mesh brings it. Raises BadMessage and what reading raises."""
        return await self.answer(service.decode_untrusted(payload, Pull))

    async def answer(self, query: Pull) -> bytes:
        rings = best(self._local.rings.matching(check_name(query.tag)), query)
        held, histories = self._held(rings, query)
        try:
            if is_quick(rings, query):
                return service.encode(read(held, query))
            if query.size is not None:
                return await self._scaled(
                    await self.in_thread(partial(read, held, query)), rings, query.size, query.whole
                )
            return await self.in_thread(lambda: service.encode(read(held, query)))
        finally:
            for history in histories:
                history.close()

    async def _scaled(self, answer: PullAnswer, rings: Sequence[Ring], size: tuple[int, int], whole: bool) -> bytes:
        of = {ring.info.incarnation: ring for ring in rings}
        if answer.messages and of[answer.messages[0].incarnation].size is not None:
            answer = replace(answer, size=size)  # it came here scaled
        elif not whole:
            answer = await self._pull_scaler.scaled(answer, rings[0].attributes, size)
        return await self.in_thread(partial(service.encode, answer))

    def _held(self, rings: Iterable[Ring], query: Pull) -> tuple[list[Held], list[_core.RingHistory]]:
        held: list[Held] = []
        histories: list[_core.RingHistory] = []
        damaged: CorruptRing | None = None
        for ring in rings:
            if ring.unordered:  # its numbers cannot be looked up
                continue
            step = step_of(query.every, ring.every)
            history = _core.RingHistory()
            try:
                memory = ring.files[0].open()
                history.attach(
                    memory.fileno(), depth=ring.row.depth, capacity_bytes=ring.row.capacity_bytes,
                    incarnation=ring.ring, tag=ring.tag, publisher=ring.info,
                    limit=limit_of(query.depth, step, ring.every),
                )  # fmt: skip
            except CorruptRing as exc:  # one bad publisher must not cost the good ones theirs
                damaged = exc
                continue
            held.append(Held(ring.info, ring.alive, step, history, ring.row.capacity_bytes, ring.way_ns))
            histories.append(history)
        if not held:
            node = self._local.table.node
            raise damaged or Empty(f"node {node!r} holds nothing of {query.tag!r} that could be pulled there")
        return held, histories


def _with_silent(answer: bytes, silent: set[str]) -> bytes:
    if not silent:
        return answer
    return service.encode(replace(service.decode_untrusted(answer, PullAnswer), unanswered=sorted(silent)))


def is_quick(rings: Sequence[Ring], query: Pull) -> bool:
    """Whether reading takes less than handing it to a thread would: one message, of a ring that has no long ones."""
    one = query.kind in ("latest", "at", "bounds") and len(rings) == 1
    plain = query.size is None and rings[0].every == query.every == 1 if one else False
    return plain and rings[0].row.capacity_bytes <= QUICK_BYTES


def best(rings: Iterable[Ring], query: Pull) -> list[Ring]:
    """The rings that a query means, one for each publisher. Of a publisher's own ring and several mirrors it is one
    that is deep enough, with the most of the scaled stream in it."""
    chosen: dict[int, Ring] = {}
    for ring in rings:
        incarnation = ring.info.incarnation
        if query.publisher not in (0, incarnation) or query.held == ("own" if ring.foreign else "mirrors"):
            continue
        if ring.size not in (None, query.size):
            continue
        if incarnation not in chosen or _merit(ring, query) < _merit(chosen[incarnation], query):
            chosen[incarnation] = ring
    return list(chosen.values())


def _merit(ring: Ring, query: Pull) -> tuple[bool, bool, int, int]:
    return ring.row.depth < query.depth, ring.foreign, step_of(query.every, ring.every), -ring.next_seq


def inline(request_id: int, answer: bytes) -> HistoryPulled:
    """A short answer as a client gets it."""
    return HistoryPulled(id=request_id, size=len(answer), answer=answer)


def beside(request_id: int, answer: bytes) -> tuple[HistoryPulled, Descriptor]:
    """A long one, in memory that goes with it. Takes its time: call it in a thread. Raises ResourceLimit."""
    try:
        memory = Descriptor(os.memfd_create("ringcast-pull", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        rest = memoryview(answer)
        while rest:
            rest = rest[os.write(memory.fileno(), rest) :]
        fcntl.fcntl(memory.fileno(), fcntl.F_ADD_SEALS, _SEALS)
    except OSError as exc:
        raise ResourceLimit(
            f"the daemon has no memory for an answer of {len(answer)} bytes ({exc.strerror})",
            "pull less at once, or raise its limit of open files (ulimit -n)",
        ) from exc
    return HistoryPulled(id=request_id, size=len(answer)), memory
