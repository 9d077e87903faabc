"""The sending node's side of a channel's seal: numbers for those who seal, and when a key is worn.

Invariant: no number is given twice, and each has one counter (`native/seal/channel_seal.hpp`), so no nonce repeats.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable

from ringcast import _core
from ringcast.control.service import Seal
from ringcast.transport.interface import LinkSeal

EPOCH_S = 3600.0
"""How long a key that was used is used at most."""


def fresh_seal() -> Seal:
    """For a new channel."""
    return Seal(secret=secrets.token_bytes(32), algorithm=_core.SEAL_ALGORITHM)


def native_seal(key: int, seal: Seal | None) -> _core.ChannelSeal | None:
    """As either end's native threads take it. Raises QosMismatch (no libcrypto)."""
    if seal is None:
        return None
    return _core.ChannelSeal(key, seal.secret, epoch=seal.epoch, algorithm=seal.algorithm)


class Sealing:
    """Of the channel or group with that key. Raises QosMismatch (no libcrypto)."""

    def __init__(
        self, key: int, seal: Seal, epoch_packets: int = _core.SEAL_EPOCH_PACKETS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.native = _core.ChannelSeal(key, seal.secret, epoch=seal.epoch, algorithm=seal.algorithm)
        self._epoch_packets = epoch_packets
        self._clock = clock
        self._since = clock()
        self._own = itertools.count()
        self._receivers = itertools.count(_core.SEAL_RECEIVER)

    def sender(self) -> int:
        """A number for a link, pump or thread of this node."""
        return next(self._own)

    def receiver(self) -> Seal:
        """For a receiver that joins now, with a number of its own."""
        epoch, secret = self.native.newest()
        return Seal(secret=secret, epoch=epoch, algorithm=self.native.algorithm, sender=next(self._receivers))

    def link(self, sender: int) -> LinkSeal:
        return self.native.link(sender)

    def renew(self) -> bool:
        """Whether the next epoch was begun. Without packets none begins: receivers would not hear of it."""
        used = self.native.used
        if used < self._epoch_packets and (not used or self._clock() - self._since < EPOCH_S):
            return False
        self.native.advance()
        self._since = self._clock()
        return True
