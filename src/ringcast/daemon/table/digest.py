"""Checksums of a keyed set. Two nodes compare them to see whether their copies differ, and in which bucket. Pure.

Invariant: the sums depend on the (key, value) pairs in the set only, not on the order of changes. So equal sets have
equal sums; different sets have different sums, but for a collision of 64 bits. With buckets, two nodes with large sets
exchange only the part that differs.
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
