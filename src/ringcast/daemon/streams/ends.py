"""The receiving ends of this node, with their sockets and threads: per kind of transport one for all usual channels,
and one of its own for each channel that is received apart.

Invariant: a shared end lives from the first channel that needs it until the daemon ends, an own one as long as its
channel.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ringcast.model import priority as urgencies
from ringcast.transport import Receiving, find
from ringcast.transport.interface import GroupReceiving, GroupTransport, ReceivingEnd, UrgentReceiving

CLOSERS = 2
"""Threads that close own ends: that waits for the end's thread, which the loop must not."""


class ReceivingEnds:
    """They listen on `host`; empty is everywhere."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._ends: dict[str, Receiving] = {}
        self._own: dict[int, tuple[str, ReceivingEnd]] = {}
        self._dropped: dict[str, dict[str, int]] = {}
        self._closers = ThreadPoolExecutor(CLOSERS, "ringcast-close")

    def end(self, transport: str) -> Receiving:
        """Raises QosMismatch (no such transport), OSError."""
        name = _name(transport)
        if name not in self._ends:
            self._ends[name] = find(transport).receive(self._host)
        return self._ends[name]

    def end_for(self, transport: str, priority: str, publisher: int = 0) -> Receiving:
        """The end for a channel of that priority and publisher; to be let go of by `release`. An urgent channel that
        shared a socket would wait behind what the others have in it. Raises QosMismatch, OSError."""
        if not urgencies.read(priority).apart:
            return self.end(transport)
        own = find(transport).receive(self._host)
        self.add_own(transport, own)
        if isinstance(own, UrgentReceiving):
            own.prioritise(priority, publisher)
        return own

    def add_own(self, transport: str, own: ReceivingEnd) -> None:
        """The end of one channel; to be let go of by `release`."""
        self._own[id(own)] = (_name(transport), own)

    def release(self, receiving: ReceivingEnd) -> None:
        """Its channel was closed. Shared ends stay."""
        found = self._own.pop(id(receiving), None)
        if found is not None:
            self._count(*found)
            self._closers.submit(receiving.close)

    def take_deaf(self) -> set[int]:
        """Channels that multicast ceased to reach."""
        return {key for _, end in self._all() if isinstance(end, GroupReceiving) for key in end.take_deaf()}

    def ended(self) -> set[int]:
        """Channels whose sender is gone, as far as transports notice by themselves."""
        return {key for _, end in self._all() for key in end.ended()}

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: how much came that nobody asked for}}"""
        found = {name: dict(counts) for name, counts in self._dropped.items()}
        for name, end in self._all():
            _add(found.setdefault(name, {}), end)
        return found

    def close(self) -> None:
        for _, end in self._all():
            end.close()
        self._own.clear()
        self._closers.shutdown(wait=False)

    def _all(self) -> list[tuple[str, ReceivingEnd]]:
        return [*self._ends.items(), *self._own.values()]

    def _count(self, name: str, end: ReceivingEnd) -> None:
        """What an own end dropped stays counted after it."""
        _add(self._dropped.setdefault(name, {}), end)


def _name(transport: str) -> str:
    kind = find(transport)
    return kind.end if isinstance(kind, GroupTransport) else transport


def _add(to: dict[str, int], end: ReceivingEnd) -> None:
    for reason, count in end.counters().items():
        if reason != "datagrams":
            to[reason] = to.get(reason, 0) + count
