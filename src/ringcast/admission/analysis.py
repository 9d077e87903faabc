"""All steps of all streams together: how long each takes at most, when each delays the others. Pure.

A step that may begin early or late (jitter) delays others more, and what delays others makes their jitter larger. So
all are computed again from each other's results until nothing changes (holistic analysis, Tindell and Clark). Results
only grow from one round to the next, so the first that does not change is the smallest that is consistent.

Work that follows work on the same node, with the same priority, is one run of work: it meets what is more important
once and not once for each step, and it never keeps two cores busy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from ringcast.admission import queueing, recovery
from ringcast.admission.model import CLASSES, NS, System, ns
from ringcast.admission.queueing import Flow
from ringcast.admission.response import HORIZON_NS, Work, response_ns, utilisation
from ringcast.admission.steps import Plan, Step, plan

_MOST_ROUNDS = 300
_UNDECLARED = len(CLASSES) - 1 - CLASSES.index("normal")
"""How many classes are above traffic that nobody declared: channels that are given no class are normal."""


@dataclass(frozen=True)
class Analysis:
    """`delay_ns` of every step, and when it ends at the latest after its stream's release."""

    plan: Plan
    delay_ns: tuple[float, ...]
    end_ns: tuple[float, ...]
    cores: tuple[float, ...]
    """Of every node, how many of its cores are busy."""
    links: dict[tuple[int, int], float]
    """Of every link and direction that is used, the share that is."""


def analyse(system: System) -> Analysis:
    """Raises AdmissionError."""
    return _Rounds(system).settle()


class _Rounds:
    def __init__(self, system: System) -> None:
        self._system = system
        self._plan = plan(system)
        self._steps = self._plan.steps
        self._delay: list[float] = [step.compute_ns if step.kind == "work" else 0 for step in self._steps]
        self._jitter: list[float] = [0] * len(self._steps)
        self._end: list[float] = [0] * len(self._steps)
        self._on_node: dict[int, list[Step]] = defaultdict(list)
        self._on_link: dict[tuple[int, int], list[Step]] = defaultdict(list)
        self._root: list[int] = []
        self._above: list[set[int]] = []
        for step in self._steps:
            self._root.append(step.number if step.before < 0 else self._root[step.before])
            self._above.append(set() if step.before < 0 else self._above[step.before] | {step.before})
            if step.kind == "work":
                self._on_node[step.node].append(step)
            elif step.kind == "link":
                self._on_link[step.link, step.direction].append(step)

    def settle(self) -> Analysis:
        for _ in range(_MOST_ROUNDS):
            if not self._round():
                break
        else:
            self._delay = [math.inf] * len(self._steps)
            self._end = list(self._delay)
        cores = tuple(
            utilisation([self._work([step]) for step in self._on_node[i]]) for i in range(len(self._system.nodes))
        )
        links = {
            key: math.fsum(step.wire_bytes * NS / step.period_ns for step in steps) / self._plan.links[key[0]].bandwidth
            for key, steps in self._on_link.items()
        }
        return Analysis(self._plan, tuple(self._delay), tuple(self._end), cores, links)

    def _round(self) -> bool:
        """Compute every step from what is known of the others; whether anything changed."""
        changed = False
        soonest: list[float] = [0] * len(self._steps)
        for step in self._steps:
            i = step.number
            begin = self._plan.jitter_ns.get(i, 0) if step.before < 0 else self._end[step.before]
            early = 0 if step.before < 0 else soonest[step.before]
            # Of what takes time on the way, only a link's latency is sure: messages may be smaller, and work quicker.
            soonest[i] = early + (self._plan.links[step.link].latency_s * NS if step.kind == "link" else 0)
            jitter = begin - early if math.isfinite(begin) else math.inf
            before, self._jitter[i] = (self._jitter[i], self._delay[i], self._end[i]), jitter
            new = begin + self._computed(step)
            self._end[i] = math.inf if new > HORIZON_NS else max(new, self._end[i])
            self._delay[i] = self._end[i] - begin if math.isfinite(self._end[i]) else math.inf
            changed |= before != (jitter, self._delay[i], self._end[i])
        return changed

    def _computed(self, step: Step) -> float:
        if math.isinf(self._jitter[step.number]):
            return math.inf
        if step.kind == "work":
            run = self._run_to(step)
            others = [one for one in self._on_node[step.node] if self._meets(step, one)]
            before = self._delay_of(run[:-1])
            return self._response_ns(run, self._runs(others)) - before
        if step.kind == "link":
            flows = [self._flow(one) for one in self._on_link[step.link, step.direction] if one is not step]
            return queueing.delay_ns(self._flow(step), flows, self._plan.links[step.link], _UNDECLARED)
        one_way = sum(self._delay[number] for number in step.path)
        return recovery.delay_ns(step.transport, step.losses, step.period_ns, one_way)

    def _response_ns(self, run: list[Step], others: list[list[Step]]) -> float:
        node = self._system.nodes[run[0].node]
        blocking = ns(node.blocking_s) + len(run) * ns(node.waking_s)
        return response_ns(self._work(run), [self._work(one) for one in others], node.cores, blocking)

    def _run_to(self, step: Step) -> list[Step]:
        """The run of work that ends with this step; of a stream that is not done with a message when the next one
        comes, the step alone."""
        run = [step]
        if self._end[step.number] <= self._steps[self._root[step.number]].period_ns:
            while self._goes_on(run[0]):
                run.insert(0, self._steps[run[0].before])
        return run

    def _runs(self, steps: list[Step]) -> list[list[Step]]:
        """These steps, each in one run. A stream that is not done when its next message comes has no runs."""
        last: dict[int, list[Step]] = {}
        runs = []
        for step in steps:
            run = last.pop(step.before, None) if self._goes_on(step) else None
            if run is None or self._jitter[run[0].number] + self._delay_of([*run, step]) > step.period_ns:
                if run is not None:
                    last[step.before] = run
                run = []
                runs.append(run)
            run.append(step)
            last[step.number] = run
        return runs

    def _goes_on(self, step: Step) -> bool:
        """Whether it is the same work as the step before it, from the processors' view."""
        if step.before < 0:
            return False
        before = self._steps[step.before]
        return (before.kind, before.node, before.rank, before.period_ns, before.thread, step.thread) == (
            "work", step.node, step.rank, step.period_ns, "", ""
        )  # fmt: skip

    def _meets(self, step: Step, one: Step) -> bool:
        """Whether both can want the processor at once. Of two steps one after the other in a stream that is done with a
        message before the next one comes, never."""
        if one is step:
            return False
        later = step if one.number in self._above[step.number] else one
        related = one.number in self._above[step.number] or step.number in self._above[one.number]
        first = self._steps[self._root[step.number]]
        return not related or self._end[later.number] > first.period_ns

    def _delay_of(self, run: list[Step]) -> float:
        return sum(self._delay[step.number] for step in run)

    def _work(self, run: list[Step]) -> Work:
        first = run[0]
        compute = sum(step.compute_ns for step in run)
        switch = len(run) * ns(self._system.nodes[first.node].preemption_s)  # a thread wakes for each step
        jitter, response = self._jitter[first.number], self._delay_of(run)
        return Work(first.rank, compute, first.period_ns, jitter, first.thread, response, switch)

    def _flow(self, step: Step) -> Flow:
        found = queueing.bucket(
            step.rank.below, step.wire_bytes, step.period_ns, self._jitter[step.number], step.losses, step.repeats
        )
        before = self._steps[step.before]
        if before.kind != "link":
            return found
        link = self._plan.links[before.link]
        via = 2 * before.link + before.direction
        return found._replace(via=via, peak=link.bandwidth, packet_bytes=link.packet_bytes)
