"""Eclipse Cyclone DDS over UDP, unicast discovery, reliable, keep-all; on loopback, or between the hosts that the
environment names in BENCH_HOSTS.

Waiting is a WaitSet on a read condition. Listeners would save a thread hand-off, but a Python listener called from the
receive thread can deadlock with a writer that holds the GIL (cyclonedds-python#208), so no careful program replies from
one.

Annotations are evaluated here, unlike elsewhere: the library builds its types from them.
"""

import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from ends.asynchronous import AsyncLink
from ends.crowd import Crowd
from ends.interface import IDLE_S, Link, Peer, Place, Sink, Source, wait_for

HOSTS = [host for host in os.environ.get("BENCH_HOSTS", "").split(",") if host]
INTERFACE = 'autodetermine="true"' if HOSTS else 'name="lo"'
PEERS_THERE = "".join(f'<Peer Address="{host}"/>' for host in HOSTS or ["127.0.0.1"])
CONFIG = f"""<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface {INTERFACE}/></Interfaces><AllowMulticast>false</AllowMulticast>
<MaxMessageSize>65500B</MaxMessageSize></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>20</MaxAutoParticipantIndex>
<Peers>{PEERS_THERE}</Peers></Discovery>
</Domain></CycloneDDS>"""
# The library reads this when it is loaded.
os.environ["CYCLONEDDS_URI"] = CONFIG

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet  # noqa: E402
from cyclonedds.domain import DomainParticipant  # noqa: E402
from cyclonedds.idl import IdlStruct  # noqa: E402
from cyclonedds.idl.types import array, uint8  # noqa: E402
from cyclonedds.pub import DataWriter  # noqa: E402
from cyclonedds.sub import DataReader  # noqa: E402
from cyclonedds.topic import Topic  # noqa: E402
from cyclonedds.util import duration  # noqa: E402

DOMAINS = 200
RELIABLE = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepAll, Policy.Durability.Volatile)


@dataclass
class Small(IdlStruct, typename="Small"):
    """An array of bytes stays bytes in Python; a sequence would become a list of integers."""

    data: array[uint8, 64]  # type: ignore[type-arg]


@dataclass
class Large(IdlStruct, typename="Large"):
    """The same for the large messages."""

    data: array[uint8, 1 << 20]  # type: ignore[type-arg]


def _participant(place: Place) -> DomainParticipant:
    return DomainParticipant(place.port % DOMAINS)


class _Out:
    def __init__(self, participant: DomainParticipant, topic: str, kind: type[Any] = Small) -> None:
        self.writer = DataWriter(participant, Topic(participant, topic, kind, qos=RELIABLE), qos=RELIABLE)
        self._kind = kind

    def send(self, data: bytes) -> None:
        self.writer.write(self._kind(data))

    def matched(self, readers: int) -> bool:
        return len(self.writer.get_matched_subscriptions()) >= readers


class _In:
    def __init__(self, participant: DomainParticipant, topic: str, waits: str, kind: type[Any] = Small) -> None:
        self.reader = DataReader(participant, Topic(participant, topic, kind, qos=RELIABLE), qos=RELIABLE)
        self._condition = ReadCondition(self.reader, SampleState.Any | ViewState.Any | InstanceState.Alive)
        self._waitset = WaitSet(participant)
        self._waitset.attach(self._condition)
        self._polls = waits == "poll"
        self._idle = duration(seconds=IDLE_S)

    def wait(self) -> None:
        """Return when there may be something to take."""
        if not self._polls and self._waitset.wait(self._idle) == 0:
            raise TimeoutError("silence")

    def recv(self) -> bytes:
        take = self.reader.take
        while not (taken := take(1, self._condition)):
            self.wait()
        return taken[0].data  # type: ignore[no-any-return]

    def matched(self) -> bool:
        return len(self.reader.get_matched_publications()) >= 1


class _Link(Link):
    def __init__(self, place: Place, side: str, waits: str) -> None:
        participant = _participant(place)
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._in, self._out = _In(participant, heard, waits), _Out(participant, out)
        self.send, self.recv = self._out.send, self._in.recv

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._out.matched(1) and self._in.matched(), timeout_s)


class _AsyncLink(AsyncLink):
    """The library's own asynchronous iteration, which waits in a thread pool."""

    def __init__(self, place: Place, side: str) -> None:
        super().__init__()
        self._link = _Link(place, side, "asyncio")
        self._samples: AsyncIterator[Any] | None = None

    def match(self, others: int, timeout_s: float) -> None:
        self._link.match(others, timeout_s)

    async def send_async(self, data: bytes) -> None:
        self._link.send(data)

    async def recv_async(self) -> bytes:
        if self._samples is None:
            self._samples = self._link._in.reader.take_aiter(timeout=duration(seconds=IDLE_S))
        return (await anext(self._samples)).data  # type: ignore[no-any-return]


class _Source(Source):
    def __init__(self, place: Place) -> None:
        participant = _participant(place)
        self._out, self._large = _Out(participant, "stream"), _Out(participant, "large", Large)
        self.send = self._out.send

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._out.matched(others) and self._large.matched(others), timeout_s)

    def send_large(self, body: np.ndarray[Any, Any]) -> None:
        self._large.send(body.tobytes())

    def pump_many(self, count: int, batch: int) -> None:
        self.pump(count)


class _Sink(Sink):
    def __init__(self, place: Place) -> None:
        participant = _participant(place)
        self._in, self._large = _In(participant, "stream", "block"), _In(participant, "large", "block", Large)
        self.recv = self._in.recv

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._in.matched() and self._large.matched(), timeout_s)

    def sum_large(self) -> int:
        return int(np.frombuffer(self._large.recv(), dtype=np.uint64).sum())

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        """There is a call to take many samples, though none to write them."""
        take, clock = self._in.reader.take, time.perf_counter_ns
        received, first = 0, 0
        try:
            while received < count:
                if taken := take(batch, self._in._condition):
                    received += len(taken)
                    first = first or clock()
                else:
                    self._in.wait()
        except TimeoutError:
            pass
        return {"first_ns": first, "last_ns": clock(), "received": received}


class _Crowd(Crowd):
    """Writer and reader in one participant: handed over inside the process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._participant = _participant(place)
        self._held: list[Any] = []
        self._out, self._in = self._both("probe")

    def _both(self, topic: str) -> tuple[_Out, _In]:
        return _Out(self._participant, topic), _In(self._participant, topic, "block")

    def hold(self, first: int, count: int) -> None:
        self._held += [self._both(f"held_{i}") for i in range(first, first + count)]

    def once(self, data: bytes) -> None:
        self._out.send(data)
        self._in.recv()

    def subscribe_once(self) -> None:
        DataReader(self._participant, Topic(self._participant, "held_0", Small, qos=RELIABLE), qos=RELIABLE)

    def connect_once(self) -> None:
        _participant(self._place)


class CycloneDds(Peer):
    name = "cyclonedds"
    offers = frozenset({"block", "poll", "asyncio", "stream", "batch", "large", "fan-out", "network", "crowd"})

    def version(self) -> str:
        return version("cyclonedds")

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _AsyncLink(place, side) if waits == "asyncio" else _Link(place, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place)

    def crowd(self, place: Place) -> Crowd:
        return _Crowd(place)


PEERS = [CycloneDds()]
