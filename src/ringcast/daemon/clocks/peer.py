"""One other node's clock: how it is known, what it is believed to show, and what happens to it. Pure but for the line
that native threads read.

A clock is *measured* (times are translated), the *same* as this node's (one kernel: nothing to translate), or *common*
(the administrator says that all nodes have one source: nothing is translated, and a violation is an error). Invariant:
whatever is believed, probes go on, and what they prove to be wrong is told once.
"""

from __future__ import annotations

from ringcast import _core
from ringcast.clock.estimator import Estimator
from ringcast.clock.exchange import Exchange
from ringcast.control.status import ClockEvent, ClockStatus

SETTLED = 4
"""Answers after which a first estimate is worth waiting for."""
WIDE_NS = 50_000
"""A bound that is wider than the path's fastest round trip by more has had no fast probe of late."""


class PeerClock:
    def __init__(self, node: str, *, common: bool) -> None:
        self.node = node
        self.base = _core.TimeBase()
        """For whoever takes messages from that node."""
        self.steps = 0
        self.violation = ""
        self._estimator = Estimator()
        self._common = common
        self._same = False
        self._answers = 0
        self._wide = False

    @property
    def is_wide(self) -> bool:
        """Whether the bound is wider than the path allows: under load most probes are slow, and more of them help."""
        return self._wide and not self._same

    @property
    def is_settled(self) -> bool:
        return self._same or self._answers >= SETTLED

    @property
    def is_same(self) -> bool:
        return self._same

    def opened(self, *, same: bool) -> None:
        """The node said which clock it has; with another daemon's word everything begins anew."""
        self._same, self._answers, self.violation = same, 0, ""
        self._estimator = Estimator()
        self.base.set(0, 0, 0.0)

    def add(self, exchange: Exchange, utc_ns: int) -> list[ClockEvent]:
        """What is to be told."""
        step = self._estimator.add(exchange)
        self._answers += 1
        events = []
        if step is not None:
            self.steps += 1
            said = f"the clock of node {self.node} was set by {step.by_ns / 1e6:+.3f} ms"
            events.append(self._event("step", said, utc_ns, step.by_ns))
        if self._same or self._common:
            events += self._held_to_agree(exchange.taken_ns, utc_ns)
        self.believe(exchange.taken_ns, utc_ns)
        return events

    def own_step(self, by_ns: int, boot_ns: int, utc_ns: int) -> None:
        self._estimator.own_step(by_ns)
        self.believe(boot_ns, utc_ns)

    def believe(self, boot_ns: int, utc_ns: int) -> None:
        """Let native threads translate by what is known now."""
        reading = self._estimator.reading(boot_ns)
        if reading is None:
            return
        self._wide = reading.bound_ns > reading.fastest_ns + WIDE_NS
        if self._same or self._common:
            return
        rate = reading.drift / (1 + reading.drift)
        self.base.set(utc_ns + reading.offset_ns, reading.offset_ns, rate)

    def status(self, boot_ns: int) -> ClockStatus:
        reading = self._estimator.reading(boot_ns)
        if reading is None:
            return ClockStatus(source="same" if self._same else "unknown", steps=self.steps)
        offset, bound, drift = reading.offset_ns, reading.bound_ns, reading.drift
        if self._same:
            offset, bound, drift = 0, 0, 0.0
        elif self._common:
            offset, bound, drift = 0, abs(offset) + bound, 0.0
        return ClockStatus(
            source="same" if self._same else "common" if self._common else "measured", offset_ns=offset, drift=drift,
            bound_ns=bound, half_round_trip_ns=reading.half_round_trip_ns, fastest_ns=reading.fastest_ns,
            probes=reading.probes, steps=self.steps, violation=self.violation,
        )  # fmt: skip

    def _held_to_agree(self, boot_ns: int, utc_ns: int) -> list[ClockEvent]:
        reading = self._estimator.reading(boot_ns)
        if reading is None or self._answers < SETTLED:
            return []
        if abs(reading.offset_ns) <= reading.bound_ns:
            if not self.violation:
                return []
            self.violation = ""
            return [self._event("agreed", f"the clock of node {self.node} agrees again", utc_ns, 0)]
        if self.violation:
            return []
        apart = f"{reading.offset_ns / 1e6:+.3f} ms, known to within {reading.bound_ns / 1e3:.0f} us"
        if self._same:
            # Two machines woken from one snapshot have one boot identity and two clocks.
            self._same = False
            said = f"the clock of node {self.node} is not this node's, though its kernel says so: {apart}; translating"
            return [self._event("apart", said, utc_ns, reading.offset_ns)]
        self.violation = (
            f"the clock of node {self.node} is {apart}, and clock.source says that all nodes have a common one; "
            "repair its synchronisation, or set clock.source to 'own'"
        )
        return [self._event("violation", self.violation, utc_ns, reading.offset_ns)]

    def _event(self, kind: str, said: str, utc_ns: int, by_ns: int) -> ClockEvent:
        return ClockEvent(kind=kind, node=self.node, at_ns=utc_ns, by_ns=by_ns, said=said)
