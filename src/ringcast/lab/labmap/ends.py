"""The ends of the paper's test: one changes variables in a period with a known pattern, the other looks when and what
arrives. Times are of the one clock of the machine that all nodes share."""

from __future__ import annotations

import os
import random
import resource
import time
from typing import Any

import numpy as np

import ringcast
from ringcast import _core
from ringcast.lab.testbed.cleanup import LabError
from ringcast.variables.changes import Changes

WAIT_S = 20.0
DEPTH = 16384
CAPACITY_BYTES = 32 * 1024 * 1024


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Bench:
    """The publisher's side: `n` doubles. The value of variable i in cycle c is c * 1,000,000 + i."""

    def __init__(
        self, session: ringcast.Session, tag: str, n: int, frame_s: float = 1.0, on_join: bool = True,
        transport: str = "",
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {"depth": DEPTH, "capacity_bytes": CAPACITY_BYTES}
        if transport:
            options["transport"] = transport
        self._variables = session.variables(tag, period_s=0.0, frame_s=frame_s, on_join=on_join, **options)
        self._names = [f"bench/block{i // 100}/v{i % 100}" for i in range(n)]
        self._indices = self._variables.add_many((name, -1.0) for name in self._names)
        self._order = np.arange(n, dtype=np.float64)
        self._variables.flush(full=True)
        self._cycle = 0

    def match(self, subscribers: int) -> None:
        self._variables.owned().publisher.wait_for_subscribers(subscribers, WAIT_S)

    def drive(
        self, cycles: int, period_s: float, batch: bool = True, share: float = 1.0, heads_up: bool = True
    ) -> dict[str, float]:
        """Change all variables in each of `cycles` periods, or that share of them, one by one or at once, and send.
        What was not sent when its period ended is lost, as the paper counts: n - p of n."""
        n = max(1, round(len(self._names) * share))
        period_ns = round(period_s * 1e9)
        variables, names, lost = self._variables, self._names, 0
        owner = variables.owned()
        bytes_before, cpu_before = owner.publisher.counters()["bytes"], cpu_s()
        begun = time.monotonic_ns()
        for number, due in zip(range(cycles), variables.ticks(period_s, heads_up=heads_up), strict=False):
            self._cycle += 1
            base = self._cycle * 1_000_000.0
            first = (number * n) % len(names) if share < 1 else 0
            if batch:
                where = self._indices[first : first + n]
                variables.set_many(where, base + self._order[first : first + n])
            else:
                for place in range(first, min(first + n, len(names))):
                    variables[names[place]] = base + place
            owner.flush()
            if time.monotonic_ns() > due + period_ns:
                lost += n
        seconds = (time.monotonic_ns() - begun) / 1e9
        return {
            "lost": lost, "seconds": max(seconds, cycles * period_s), "changes": cycles * n,
            "cpu_s": cpu_s() - cpu_before, "bytes": owner.publisher.counters()["bytes"] - bytes_before,
        }  # fmt: skip

    def close(self) -> None:
        self._variables.close()


class Observer:
    """A subscriber's side. It keeps, per arrival, when it was told and how old its youngest and oldest values were."""

    def __init__(
        self, session: ringcast.Session, tag: str, transport: str = "", select: list[str] | None = None,
        policy: dict[str, Any] | None = None, wait: bool = True, busy_poll: bool = False, look_out: bool = True,
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {"depth": DEPTH, "capacity_bytes": CAPACITY_BYTES}
        begun = time.monotonic()
        self._variables = session.variables(tag, **options)
        made = _policy(policy)
        self._subscription = self._variables.subscribe(
            *(select or ()), policy=made, transport=transport, busy_poll=busy_poll, look_out=look_out
        )
        self._yields = busy_poll
        self._stamps: list[tuple[int, int, int, int, int]] = []
        self._wrong = 0
        self._seen = 0
        if wait:
            self._subscription.wait_complete(WAIT_S)
        self.tells = time.monotonic() - begun
        self._subscription.on_change(self._changed)

    def _changed(self, changes: Changes) -> None:
        told_ns = _core.utc_ns()  # t5: in the application's hands
        if self._yields:
            self._yields = False
            _give_way()
        numbers, times = changes.numbers, changes.times
        self._seen += len(numbers)
        fresh = ~changes.repeated
        if not fresh.any():
            return
        set_ns = int(times[fresh].mean())
        self._stamps.append((set_ns, changes.sent_ns, changes.kernel_ns, changes.arrived_ns, told_ns))
        # The pattern: what is left after the cycle is the variable's place.
        places = numbers[fresh] % 1_000_000.0
        self._wrong += int(((places != changes.indices[fresh]) & (numbers[fresh] >= 0)).sum())

    def begin(self) -> None:
        self._stamps = []
        self._wrong = self._seen = 0
        self._counted = self._subscription.counters()
        self._cpu_s = cpu_s()

    def seen(self, wanted: int, limit_s: float) -> int:
        """Wait until so many values came since `begin`, or time is up."""
        deadline = time.monotonic() + limit_s
        while self._values() < wanted and time.monotonic() < deadline:
            time.sleep(0.005)
        return self._values()

    def _values(self) -> int:
        return self._subscription.counters()["values"] - self._counted["values"]

    def report(self) -> dict[str, Any]:
        """Since `begin`. Jitter by both definitions of section VI."""
        stamps = np.array(self._stamps, dtype=np.int64).reshape(-1, 5)
        ages, told = (stamps[:, 4] - stamps[:, 0]).astype(np.float64), stamps[:, 4].astype(np.float64)
        counters = self._subscription.counters()
        gaps = np.diff(told)
        return {
            "values": self._values(), "lost": counters["lost"] - self._counted["lost"], "wrong": self._wrong,
            "unknown": counters["unknown"], "arrivals": len(ages), "cpu_s": cpu_s() - self._cpu_s,
            "mean_us": float(ages.mean() / 1e3) if ages.size else None,
            "p50_us": float(np.percentile(ages, 50) / 1e3) if ages.size else None,
            "most_us": float(ages.max() / 1e3) if ages.size else None,
            "deviation_us": float(ages.std() / 1e3) if ages.size else None,
            "period_jitter_us": float(np.abs(np.diff(gaps)).mean() / 1e3) if gaps.size > 1 else None,
            **_parts(stamps),
        }  # fmt: skip

    def close(self) -> None:
        self._subscription.close()
        self._variables.close()


def _give_way() -> None:
    """A thread that never sleeps lets its node's daemon run, and still runs before what is not of the test."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def _parts(stamps: Any) -> dict[str, float | None]:
    """Medians of the parts between the stamps t1 to t5. By tcp, and within a node, the kernel stamps nothing."""
    names = ("change_to_send_us", "send_to_kernel_us", "kernel_to_mirror_us", "mirror_to_hand_us")
    known = stamps[(stamps > 0).all(axis=1)]
    if not len(known):
        return dict.fromkeys(names)
    return {name: float(np.median(known[:, place + 1] - known[:, place]) / 1e3) for place, name in enumerate(names)}


class Joiner:
    """Joins again and again, and measures how long it takes until it knows everything."""

    def __init__(self, session: ringcast.Session, tag: str, transport: str) -> None:
        self._session = session
        self._tag = tag
        self._transport = transport

    def join(self, times: int, limit_s: float, spread_s: float, seed: int) -> list[float | None]:
        """Seconds of each; None when it was not complete within `limit_s`. Each begins at another moment of a frame of
        `spread_s`: one that begins when the last was complete would always begin after a full packet."""
        found: list[float | None] = []
        chance = random.Random(seed)
        options: dict[str, Any] = {"depth": DEPTH, "capacity_bytes": CAPACITY_BYTES}
        with self._session.variables(self._tag, **options) as variables:
            for _ in range(times):
                time.sleep(chance.uniform(0.0, spread_s))
                with variables.subscribe(transport=self._transport) as subscription:
                    begun = time.monotonic()
                    try:
                        subscription.wait_complete(limit_s)
                        found.append(time.monotonic() - begun)
                    except TimeoutError:
                        found.append(None)
        return found

    def close(self) -> None:
        """Nothing is held."""


def _policy(wanted: dict[str, Any] | None) -> Any:
    if wanted is None:
        return None
    kinds = {"periodic": ringcast.Periodic, "on change": ringcast.OnChange}
    fields = dict(wanted)
    try:
        return kinds[fields.pop("kind")](**fields)
    except (KeyError, TypeError) as exc:
        raise LabError(f"no such policy: {wanted}") from exc
