"""How often somebody may do something: a bucket of tokens that fills with time. Pure: time is an argument."""

from __future__ import annotations


class Bucket:
    """`per_s` tokens a second, at most `burst` of them saved up. With `per_s` 0 there is no limit."""

    __slots__ = ("_burst", "_per_s", "_tokens", "_updated_s")

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._updated_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Take a token: 0. When there is none, how long until there is one."""
        if not self._per_s:
            return 0.0
        self._tokens = min(self._burst, self._tokens + max(0.0, now_s - self._updated_s) * self._per_s)
        self._updated_s = now_s
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._per_s
