"""A system that runs: declared streams on preemptive processors and links with strict priorities, event by event.

It shares the steps with the analysis and nothing else: how threads and packets wait for each other is done here as an
operating system and a network card do it. Used to see whether a bound is ever exceeded.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ringcast.admission.model import NS, System
from ringcast.admission.steps import Step, plan


class Job:
    def __init__(self, step: Step, released_ns: int, left_ns: int, order: int) -> None:
        self.step, self.released_ns, self.left_ns, self.order = step, released_ns, left_ns, order


class Simulator:
    """`longest` is, of every step, the longest from its stream's release until its end."""

    def __init__(self, system: System, seed: int, noise: bool) -> None:
        self.plan = plan(system)
        self.longest: dict[int, int] = defaultdict(int)
        self._system, self._random, self._noise = system, random.Random(seed), noise
        self._after: dict[int, list[Step]] = defaultdict(list)
        for step in self.plan.steps:
            self._after[step.before].append(step)
        self._events: list[tuple[int, int, Any, tuple[Any, ...]]] = []
        self._count = itertools.count()
        self._threads: dict[int, dict[object, list[Job]]] = defaultdict(dict)
        self._queues: dict[tuple[int, int], list[list[Any]]] = defaultdict(lambda: [[] for _ in range(4)])
        self._sending: set[tuple[int, int]] = set()
        self._now = 0

    def run(self, until_ns: int, released: Mapping[int, Sequence[int]] | None = None) -> None:
        """`released` has, by the number of a stream's first step, when it is released; others are by their periods."""
        for number, times in (released or {}).items():
            for count, when in enumerate(times):
                self._at(when, self._begin, self.plan.steps[number], when, count)
        for root in [root for root in self._after[-1] if root.number not in (released or {})]:
            phase = self._random.choice((0, self._random.randrange(root.period_ns)))
            for number, nominal in enumerate(range(phase, until_ns, root.period_ns)):
                late = self._random.choice((0, self.plan.jitter_ns.get(root.number, 0)))
                self._at(nominal + late, self._begin, root, nominal, number)
        while self._events or any(self._running(node) for node in self._threads):
            self._advance()

    # ---------------------------------------------------------------- time

    def _at(self, when: int, what: Any, *args: Any) -> None:
        heapq.heappush(self._events, (when, next(self._count), what, args))

    def _advance(self) -> None:
        running = [job for node in self._threads for job in self._running(node)]
        done = self._now + min((job.left_ns for job in running), default=1 << 62)
        when = min(done, self._events[0][0] if self._events else 1 << 62)
        for job in running:
            job.left_ns -= when - self._now
        self._now = when
        for job in running:
            if job.left_ns == 0:
                self._worked(job)
        while self._events and self._events[0][0] == when:
            _, _, what, args = heapq.heappop(self._events)
            what(*args)

    # ---------------------------------------------------------------- steps

    def _begin(self, step: Step, nominal: int, number: int) -> None:
        if step.kind == "work":
            least = step.compute_ns if self._random.random() < 0.7 else step.compute_ns // 2
            thread: object = step.thread or step.number
            job = Job(step, nominal, least, number)
            if least == 0:
                self._end(step, nominal, number)
            else:
                self._threads[step.node].setdefault(thread, []).append(job)
        elif step.kind == "link":
            link = self.plan.links[step.link]
            packets, left = [], step.wire_bytes
            while left > 0:
                packets.append(min(left, link.packet_bytes))
                left -= packets[-1]
            for i, size in enumerate(packets):
                self._enqueue(step, nominal, number, size, i == len(packets) - 1)
        else:
            self._end(step, nominal, number)

    def _enqueue(self, step: Step, nominal: int, number: int, size: int, last: bool) -> None:
        key = (step.link, step.direction)
        self._queues[key][step.rank.below].append((size, (step, nominal, number, size, last)))
        self._send(key)

    def _end(self, step: Step, nominal: int, number: int) -> None:
        self.longest[step.number] = max(self.longest[step.number], self._now - nominal)
        for after in self._after[step.number]:
            if number % max(1, after.period_ns // step.period_ns) == 0:
                self._begin(after, nominal, number // max(1, after.period_ns // step.period_ns))

    # ---------------------------------------------------------------- processors

    def _running(self, node: int) -> list[Job]:
        """The first jobs of the threads of highest priority. Of equal ones, who came first."""
        heads = [queue[0] for queue in self._threads[node].values() if queue]
        heads.sort(key=lambda job: (job.step.rank, job.released_ns))
        return heads[: self._system.nodes[node].cores]

    def _worked(self, job: Job) -> None:
        queue = self._threads[job.step.node][job.step.thread or job.step.number]
        queue.remove(job)
        self._end(job.step, job.released_ns, job.order)

    # ---------------------------------------------------------------- links

    def _send(self, key: tuple[int, int]) -> None:
        if key in self._sending:
            return
        link = self.plan.links[key[0]]
        waiting = next((queue for queue in self._queues[key] if queue), None)
        if waiting is None:
            return
        size, packet = waiting.pop(0)
        self._sending.add(key)
        takes = int(size * NS / link.bandwidth)
        self._at(self._now + takes, self._sent, key, packet)

    def _sent(self, key: tuple[int, int], packet: Any) -> None:
        self._sending.discard(key)
        if packet is not None:
            link = self.plan.links[key[0]]
            self._at(self._now + int(link.latency_s * NS), self._arrived, *packet)
            if self._noise and packet[-1]:
                # Somebody who declared nothing has a packet ready whenever the link falls idle.
                self._queues[key][-1].append((link.packet_bytes, None))
        self._send(key)

    def _arrived(self, step: Step, nominal: int, number: int, size: int, last: bool) -> None:
        """Where another link follows, each packet goes on as it comes: neither a card nor a switch waits for the
        rest of a message."""
        onward = [after for after in self._after[step.number] if after.kind == "link"]
        for after in onward:
            self._enqueue(after, nominal, number, size, last)
        if last and onward:
            self.longest[step.number] = max(self.longest[step.number], self._now - nominal)
        elif last:
            self._end(step, nominal, number)
