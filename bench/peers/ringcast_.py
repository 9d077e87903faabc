"""Ringcast itself, as an application uses it, with a daemon of its own for each measurement.

The loops differ from the shared ones only in reading `.data` of the message that `recv` returns. `lost` is not looked
at for each message: sequence numbers are dense, so the span from first to last proves that none is missing.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from array import array
from collections.abc import AsyncIterator
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import ringcast
import ringcast._core
from ends.asynchronous import AsyncLink
from ends.interface import PAYLOAD, STOP, Asking, End, Keeper, Link, Peer, Place, Puller, Sink, Source
from ends.room import chosen

MAX_WAIT_S = 10.0
LARGE = {"depth": 2 * chosen(), "capacity_bytes": chosen() << 20, "max_wait_s": MAX_WAIT_S}
SMALL = {"max_wait_s": MAX_WAIT_S}


def _socket(place: Place, node: str = "") -> Path:
    return place.folder / f"ringcast{node}.sock"


class _Held(End):
    """A session, closed with everything in it."""

    def __init__(self, place: Place) -> None:
        self.session = ringcast.connect(_socket(place), start=False, program="bench")
        self._token = place.token

    def tag(self, name: str, **attributes: Any) -> ringcast.Tag:
        return self.session.tag(f"bench/{self._token}/{name}", **attributes)

    def close(self) -> None:
        self.session.close()


class _Link(_Held, Link):
    def __init__(self, place: Place, side: str, waits: str) -> None:
        super().__init__(place)
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._sub = self.tag(heard).subscribe(busy_poll=waits == "poll")
        self._pub = self.tag(out).publisher()
        self.send = self._pub.send

    def match(self, others: int, timeout_s: float) -> None:
        self._pub.wait_for_subscribers(1, timeout=timeout_s)

    def ping(self, count: int, limit_s: float) -> list[int]:
        send, recv, clock = self._pub.send, self._sub.recv, time.perf_counter_ns
        samples = array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            send(PAYLOAD)
            recv().data  # noqa: B018 - taking the payload is part of the round trip
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    def pong(self) -> None:
        send, recv = self._pub.send, self._sub.recv
        while (data := recv().data) != STOP:
            send(data)


class _Asking(Asking):
    """`tag.ask` and `tag.serve`."""

    def __init__(self, place: Place, side: str, node: str = "") -> None:
        self._session = ringcast.connect(_socket(place, node), start=False, program="bench")
        self._tag = self._session.tag(f"bench/{place.token}/asked")
        self._over = threading.Event()
        self._serves = side == "pong"
        if self._serves:
            self._server = self._tag.serve(self._answer)
        else:
            self.ask = self._tag.ask

    def match(self, others: int, timeout_s: float) -> None:
        if not self._serves:
            self._tag.ask(PAYLOAD, timeout=timeout_s)

    def _answer(self, data: bytes) -> bytes:
        if data == STOP:
            self._over.set()
        return data

    def serve(self) -> None:
        self._over.wait()

    def close(self) -> None:
        self._session.close()


class _AsyncLink(AsyncLink):
    """`async for message in subscriber`."""

    def __init__(self, place: Place, side: str) -> None:
        super().__init__()
        self._link = _Link(place, side, "asyncio")
        self._messages: AsyncIterator[ringcast.Message] = aiter(self._link._sub)

    def match(self, others: int, timeout_s: float) -> None:
        self._link.match(others, timeout_s)

    async def send_async(self, data: bytes) -> None:
        self._link.send(data)

    async def recv_async(self) -> bytes:
        return (await anext(self._messages)).data  # type: ignore[no-any-return]

    def close(self) -> None:
        async def last() -> None:
            await self._messages.aclose()  # type: ignore[attr-defined]
            self._link.close()

        self.loop.run_until_complete(last())
        super().close()


class _Source(_Held, Source):
    def __init__(self, place: Place, fan_out: bool) -> None:
        super().__init__(place)
        self._pub = self.tag("stream", **SMALL).publisher()
        self._large = None if fan_out else self.tag("large", **LARGE).publisher()
        self.send = self._pub.send

    def match(self, others: int, timeout_s: float) -> None:
        self._pub.wait_for_subscribers(others, timeout=timeout_s)
        if self._large is not None:
            self._large.wait_for_subscribers(others, timeout=timeout_s)

    def pump_many(self, count: int, batch: int) -> None:
        items, send_many = [PAYLOAD] * batch, self._pub.send_many
        for _ in repeat(None, count // batch):
            send_many(items)

    def pump_large(self, count: int, size: int) -> None:
        assert self._large is not None
        reserve = self._large.reserve
        for value in range(count):
            room = reserve(size)
            np.frombuffer(room, dtype=np.uint64).fill(value)
            room.commit()


class _Sink(_Held, Sink):
    def __init__(self, place: Place, fan_out: bool) -> None:
        super().__init__(place)
        self._sub = self.tag("stream", **SMALL).subscribe(reliable=not fan_out)
        self._large = None if fan_out else self.tag("large", **LARGE).subscribe(reliable=True)
        self.recv = self._sub.recv

    def drain(self, count: int) -> dict[str, int]:
        recv, clock = self._sub.recv, time.perf_counter_ns
        message = recv()
        first, first_seq = clock(), message.seq
        for _ in repeat(None, count - 1):
            message = recv()
            message.data  # noqa: B018 - taking the payload is part of receiving
        return _seen(first, clock(), count, message.seq - first_seq + 1)

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        recv_many, clock = self._sub.recv_many, time.perf_counter_ns
        messages = recv_many(batch)
        first, first_seq, received = clock(), messages[0].seq, len(messages)
        while received < count:
            messages = recv_many(batch)
            received += len(messages)
        return _seen(first, clock(), received, messages[-1].seq - first_seq + 1)

    def sum_large(self) -> int:
        assert self._large is not None
        message = self._large.recv(copy=False)
        total = int(np.frombuffer(message.data, dtype=np.uint64).sum())
        if not message.valid:
            raise RuntimeError("a message was overwritten while it was read")
        return total


def _seen(first_ns: int, last_ns: int, received: int, span: int) -> dict[str, int]:
    """`received` counts only if no number is missing between the first and the last."""
    return {"first_ns": first_ns, "last_ns": last_ns, "received": received if span == received else 2 * received - span}


class _Keeper(_Held, Keeper):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._pub = self.tag("kept").publisher()

    def keep(self, count: int) -> int:
        for _ in repeat(None, count):
            seq = self._pub.send(PAYLOAD)
        return seq


class _Puller(_Held, Puller):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        history = self.tag("kept").history()
        self.latest: Any = history.latest
        self.at: Any = history.at


class Ringcast(Peer):
    name = "ringcast"
    offers = frozenset({"block", "poll", "asyncio", "stream", "batch", "large", "fan-out", "pull", "pull-at", "ask"})
    serves = True

    def version(self) -> str:
        """With a print of the native core: during development the number alone does not say what was measured."""
        core = Path(ringcast._core.__file__).read_bytes()
        return f"{version('ringcast')} (core {hashlib.sha256(core).hexdigest()[:8]})"

    def server(self, place: Place) -> list[str]:
        return [sys.executable, "-m", "ringcast", "daemon", "--no-config", "--socket", str(_socket(place))]

    def served(self, place: Place) -> bool:
        try:
            ringcast.connect(_socket(place), start=False).close()
        except ringcast.DaemonUnavailable:
            return False
        return True

    def link(self, place: Place, side: str, waits: str) -> Link:
        if waits == "ask":
            return _Asking(place, side)
        return _AsyncLink(place, side) if waits == "asyncio" else _Link(place, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place, fan_out)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place, fan_out)

    def keeper(self, place: Place) -> Keeper:
        return _Keeper(place)

    def puller(self, place: Place) -> Puller:
        return _Puller(place)


class TwoNodes(Ringcast):
    """Two daemons of one mesh, an end at each."""

    name = "ringcast, two nodes"
    offers = frozenset({"ask-network"})

    def server(self, place: Place) -> list[str]:
        sockets = [str(_socket(place, node)) for node in "ab"]
        return [sys.executable, str(Path(__file__).parent.parent / "ends" / "two_nodes.py"), str(place.port), *sockets]

    def served(self, place: Place) -> bool:
        try:
            with ringcast.connect(_socket(place, "b"), start=False) as session:
                return {row.name for row in session.nodes() if row.state == "here"} == {"a", "b"}
        except ringcast.DaemonUnavailable:
            return False

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _Asking(place, side, "a" if side == "ping" else "b")


PEERS = [Ringcast(), TwoNodes()]
