"""Seals of channels that leave this node, between their opening and their start.

Invariant: a channel is started with the seal that its receiver was told, or not at all.
"""

from __future__ import annotations

import asyncio

from ringcast.control.service import Seal
from ringcast.errors import BrokenError, QosMismatch
from ringcast.transport import Transport
from ringcast.transport.interface import GroupTransport, SealedSending, Sending
from ringcast.transport.sealing import fresh_seal

HOLD_S = 5.0


class Seals:
    """`wanted`: nothing leaves this node that is not sealed."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._held: dict[tuple[str, int], tuple[Seal, asyncio.TimerHandle]] = {}

    def make(self, node: str, key: int, transport: Transport) -> Seal | None:
        """For a channel that is being opened; a group has one of its own, and is only told that it needs one. None on
        a mesh without identities. Raises QosMismatch when the transport cannot seal what it sends."""
        if not self._wanted:
            return None
        if not getattr(transport, "seals", False):
            what, remedy = f"transport {transport.name!r}", "use another one, or take Channel.seal in it"
            raise QosMismatch(what, "in a mesh with identities streams are sealed, and it does not seal", remedy)
        if isinstance(transport, GroupTransport):
            return fresh_seal()
        if (node, key) not in self._held:  # else the node asks again: it did not get our answer
            timer = asyncio.get_running_loop().call_later(HOLD_S, self._held.pop, (node, key), None)
            self._held[node, key] = (fresh_seal(), timer)
        return self._held[node, key][0]

    def take(self, node: str, key: int, transport: Transport) -> Seal | None:
        """The one that the channel was opened with. Raises BrokenError."""
        if not self._wanted or isinstance(transport, GroupTransport):
            return None
        if (node, key) not in self._held:
            raise BrokenError(f"channel {key:x} was not opened, or too long ago, so it has no seal; open it again")
        seal, timer = self._held.pop((node, key))
        timer.cancel()
        return seal

    def renew(self, sending: Sending) -> None:
        """Called every second."""
        if self._wanted and isinstance(sending, SealedSending):
            sending.renew_keys()

    def close(self) -> None:
        for _, timer in self._held.values():
            timer.cancel()
