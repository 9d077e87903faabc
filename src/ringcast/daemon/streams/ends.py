"""The receiving ends of this node: per kind of transport one, with its sockets and threads, for all channels.

Invariant: an end lives from the first channel that needs it until the daemon ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ringcast.transport import Receiving, find
from ringcast.transport.interface import GroupReceiving, GroupTransport


class ReceivingEnds:
    """They listen on `host`; empty is everywhere."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._ends: dict[str, Receiving] = {}

    def end(self, transport: str) -> Receiving:
        """Raises QosMismatch (no such transport), OSError."""
        kind = find(transport)
        name = kind.end if isinstance(kind, GroupTransport) else transport
        if name not in self._ends:
            self._ends[name] = kind.receive(self._host)
        return self._ends[name]

    def group_end(self, transport: str) -> GroupReceiving:
        return cast(GroupReceiving, self.end(transport))

    def hears(self, transport: str, key: int) -> bool:
        """Whether multicast reaches a channel."""
        return self.group_end(transport).hears(key)

    def take_deaf(self, transports: Iterable[str]) -> set[int]:
        """Channels, of those transports, that multicast ceased to reach."""
        grouped = {name for name in transports if isinstance(find(name), GroupTransport)}
        return {key for name in grouped for key in self.group_end(name).take_deaf()}

    def ended(self) -> set[int]:
        """Channels whose sender is gone, as far as transports notice by themselves."""
        return {key for end in self._ends.values() for key in end.ended()}

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: how much came that nobody asked for}}"""
        found = {}
        for name, end in self._ends.items():
            found[name] = {reason: count for reason, count in end.counters().items() if reason != "datagrams"}
        return found

    def close(self) -> None:
        for end in self._ends.values():
            end.close()
