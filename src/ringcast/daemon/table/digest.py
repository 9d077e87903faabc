"""Sums of a keyed set, by which two nodes see whether, and about where, their copies differ. Pure.

Invariant: the sums are a function of the (key, value) pairs inside, whatever the order in which they came and went;
so equal sets have equal sums, and unequal ones differ except by a coincidence of 64 bits. Buckets keep what must be
told about a difference small when the set is large.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

BUCKETS = 32
_WORD = 2**64 - 1


class KeyedSums:
    """Keys are 64-bit numbers, evenly spread (random, or hashes)."""

    def __init__(self) -> None:
        self.sums = [0] * BUCKETS
        self.total = 0

    def toggle(self, key: int, value: int) -> None:
        """Put the pair in, or take it out when it is in."""
        mixed = (key ^ (value * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ (mixed >> 29)) * 0x94D049BB133111EB & _WORD
        mixed ^= mixed >> 32
        self.sums[key % BUCKETS] ^= mixed
        self.total ^= mixed

    def differing(self, theirs_untrusted: list[int]) -> list[int]:
        """The buckets in which another's sums differ; none when it counts in other buckets than we do."""
        if len(theirs_untrusted) != BUCKETS:
            return []
        return [i for i, (a, b) in enumerate(zip(self.sums, theirs_untrusted, strict=True)) if a != b]


@lru_cache(maxsize=65536)
def key_of(name: str) -> int:
    """A name as a key: the same on every node."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
