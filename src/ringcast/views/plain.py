"""A policy over messages of any codec: the newest per period, or what changed. Pure: time is an argument.

A repeat is the same message once more, with its event time, marked as one that receivers can do without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringcast.codec.arrays import NUMPY
from ringcast.errors import DecodeError
from ringcast.model.policy import EveryCycle, OnChange, Periodic, Policy

NEVER = 2**63 - 1


class Sample(NamedTuple):
    payload: bytes
    event_ns: int
    repeated: bool = False


class PlainView:
    """`feed` what comes, in order, and then `poll`."""

    def __init__(self, policy: Policy, codec: str) -> None:
        self._policy = policy
        self._arrays = NUMPY.bind(None) if codec == "numpy" else None
        self._newest: Sample | None = None
        self._fresh = False
        self._known: Sample | None = None
        self._at_ns = -NEVER
        self._slot_ns = 0
        self._queued: list[Sample] = []

    def feed(self, payload: bytes, event_ns: int) -> None:
        self._newest = Sample(payload, event_ns)
        self._fresh = True
        if isinstance(self._policy, EveryCycle):
            self._queued.append(self._newest)

    def poll(self, now_ns: int) -> list[Sample]:
        match self._policy:
            case EveryCycle():
                queued, self._queued = self._queued, []
                return queued
            case Periodic(period_s=period_s):
                return self._periodic(now_ns, round(period_s * 1e9))
            case OnChange() as policy:
                return self._changed(now_ns, policy)
        return []

    def _periodic(self, now_ns: int, period_ns: int) -> list[Sample]:
        if self._newest is None or now_ns < self._slot_ns:
            return []
        # On a fixed grid: a late look does not shift the next one.
        self._slot_ns = (now_ns // period_ns + 1) * period_ns
        repeated, self._fresh = not self._fresh, False
        return [self._newest._replace(repeated=repeated)]

    def _changed(self, now_ns: int, policy: OnChange) -> list[Sample]:
        period_ns = round(policy.period_s * 1e9)
        if self._newest is None or (period_ns and now_ns < self._slot_ns):
            return []
        if period_ns:
            self._slot_ns = (now_ns // period_ns + 1) * period_ns
        if self._differs(policy) and now_ns - self._at_ns >= policy.least_s * 1e9:
            return self._sent(self._newest, now_ns)
        if self._known is not None and policy.longest_s and now_ns - self._at_ns >= policy.longest_s * 1e9:
            return self._sent(self._known._replace(repeated=True), now_ns)
        return []

    def _sent(self, sample: Sample, now_ns: int) -> list[Sample]:
        self._known = sample._replace(repeated=False)
        self._at_ns = now_ns
        return [sample]

    def _differs(self, policy: OnChange) -> bool:
        newest, known = self._newest, self._known
        if newest is None or known is None:
            return newest is not None
        if policy.dead_band > 0 and self._arrays is not None:
            return self._moved(newest.payload, known.payload, policy.dead_band)
        if newest.payload != known.payload:
            return True
        return policy.by == "either" and newest.event_ns != known.event_ns

    def _moved(self, newest: bytes, known: bytes, dead_band: float) -> bool:
        """Whether any number of an array moved by more than the dead band."""
        assert self._arrays is not None
        try:
            now, before = self._arrays.decode(newest), self._arrays.decode(known)
        except DecodeError:
            return newest != known
        if now.shape != before.shape or now.dtype != before.dtype or now.dtype.kind not in "iuf":
            return newest != known
        with np.errstate(invalid="ignore"):
            apart = np.abs(now.astype(np.float64) - before.astype(np.float64)) > dead_band
        return bool(apart.any() or (np.isnan(now.astype(np.float64)) != np.isnan(before.astype(np.float64))).any())

    @property
    def wake_at_ns(self) -> int:
        """When `poll` has something to do though nothing is fed."""
        if self._newest is None:
            return NEVER
        match self._policy:
            case Periodic():
                return self._slot_ns
            case OnChange() as policy:
                at = NEVER
                if self._differs(policy):
                    at = max(self._slot_ns, self._at_ns + round(policy.least_s * 1e9))
                if policy.longest_s and self._known is not None:
                    at = min(at, max(self._slot_ns, self._at_ns + round(policy.longest_s * 1e9)))
                return at
        return NEVER
