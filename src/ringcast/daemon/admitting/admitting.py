"""Lets declared publishers and subscribers with deadlines in, or refuses them with the numbers.

Opt-in: whoever declares nothing is never judged, and costs nobody anything. What was let in before counts: a newcomer
that would make another miss its deadline is refused too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

from ringcast.admission.calibration import Calibration, default_path, load, this_machine
from ringcast.admission.model import AdmissionError, System
from ringcast.daemon.table.promised import promised
from ringcast.daemon.table.rows import Declaration, PublisherRow, SubscriberRow, declaration_key
from ringcast.daemon.table.table import TagTable
from ringcast.errors import AdmissionRefused, QosMismatch
from ringcast.model.carrier import is_automatic
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Wanted
from ringcast.model.policy import described_view
from ringcast.model.priority import read
from ringcast.model.profile import Profile
from ringcast.qos.matching import check, factor
from ringcast.qos.profile import built_in
from ringcast.scaling.fidelity import Range
from ringcast.scaling.interface import Size
from ringcast.scaling.scaled_bytes import scaled_bytes
from ringcast.transport.urgent import scheduling

if TYPE_CHECKING:
    from ringcast.admission.fidelity import Choice
    from ringcast.admission.verdict import Judged
    from ringcast.daemon.admitting.declared_system import Others

MOST_STREAMS = 32
"""Judging happens between two requests, and takes longer than in proportion: with more, every client would wait."""
_MOST_SEARCHED = 4
_NEW = 0
"""The number of one that has none yet."""


class Allowed(NamedTuple):
    """What admission leaves of a range: so many messages a second, and a size; None is any."""

    hz: float = math.inf
    size: Size | None = None

    def and_(self, hz: float, size: Size | None) -> Allowed:
        """The less of both."""
        sizes = [one for one in (self.size, size) if one is not None]
        return Allowed(min(self.hz, hz), min(sizes, key=math.prod, default=None))


def this_calibration() -> Calibration:
    """Raises AdmissionError."""
    return load(default_path(), this_machine(metadata.version("ringcast")))


class Admitting:
    """`granted` raises QosMismatch when the kernel of this node, which it is told the name of, refuses a schedule."""

    def __init__(
        self, table: TagTable, calibration: Callable[[], Calibration] = this_calibration,
        granted: Callable[[str, str], None] = scheduling.check,
    ) -> None:  # fmt: skip
        self._table = table
        self._calibration = calibration
        self._granted = granted
        self.others: Others | None = None
        """What is known of other nodes, where there is a network."""

    def publish(self, tag: str, said: Declared | None) -> None:
        """Raises AdmissionRefused."""
        if said is None:
            return
        node = self._table.node
        info = PublisherInfo(id=_NEW, node=node, tag=tag, incarnation=1, pid=0, user="", program="")
        row = PublisherRow(info=info, depth=1, capacity_bytes=1, declared=said)
        self._judge(f"a publisher on {tag!r}", [row], [])

    def subscribe(
        self, pattern: str, deadline_s: float, reliable: bool, wanted: Wanted, transport: str = ""
    ) -> None:  # fmt: skip
        """A pattern is judged for every tag that it selects now. Raises AdmissionRefused."""
        if not deadline_s:
            return
        rows = self._newcomers(pattern, deadline_s, reliable, wanted, transport)
        self._judge(f"a subscriber to {pattern!r} with a deadline of {deadline_s:g} s", [], rows)

    def pull(self, row: SubscriberRow) -> None:
        """A pull client declares itself. Raises AdmissionRefused."""
        limit = f" and wants nothing older than {row.deadline_s:g} s" if row.deadline_s else ""
        what = f"a history of {row.info.pattern!r} that pulls every {row.pulls_s:g} s{limit}"
        self._judge(what, [], [row])

    def _newcomers(
        self, pattern: str, deadline_s: float, reliable: bool, wanted: Wanted, transport: str
    ) -> list[SubscriberRow]:
        node = self._table.node
        return [
            SubscriberRow(
                info=SubscriberInfo(
                    id=_NEW, node=node, pattern=tag.name, pid=0, user="", reliable=reliable, program=""
                ),
                wanted=wanted, deadline_s=deadline_s, transport="" if is_automatic(transport) else transport,
            )
            for tag in self._table.tags(pattern)
        ]  # fmt: skip

    def allowed_for(
        self, pattern: str, deadline_s: float, reliable: bool, wanted: Wanted, transport: str = ""
    ) -> Allowed:  # fmt: skip
        """The most of a newcomer's range with which all deadlines are kept."""
        return self.allowed(self._newcomers(pattern, deadline_s, reliable, wanted, transport)).get(_NEW, Allowed())

    def allowed(self, newcomers: Sequence[SubscriberRow] = ()) -> dict[int, Allowed]:
        """By subscriber of this node with a range: what it can have, where that is not the most of it."""
        rows = [row for row in self._table.all_publishers() if row.declared is not None and row.alive]
        if not rows or len(rows) > MOST_STREAMS:
            return {}
        from ringcast.admission.fidelity import settle
        from ringcast.daemon.admitting.declared_system import declared_system

        try:
            system = declared_system(self._table, self._calibration(), [], list(newcomers), self.others)
            choices = settle(system)[1]
        except AdmissionError:
            return {}
        found: dict[int, Allowed] = {}
        for choice in choices:
            node, _, number = choice.name.rpartition("#")
            if node == self._table.node and not choice.best:
                size = self._size(choice, rows, newcomers) if choice.bytes else None
                found[int(number)] = found.get(int(number), Allowed()).and_(choice.hz, size)
        return found

    def _size(self, choice: Choice, publishers: list[PublisherRow], newcomers: Sequence[SubscriberRow]) -> Size | None:
        """The best size of the subscriber's range that has so few bytes."""
        from ringcast.daemon.admitting.declared_system import stream_name, subscriber_name

        row = next(row for row in publishers if stream_name(row) == choice.tag)
        wanting = [*newcomers, *self._table.subscribers(row.info.tag)]
        one = next(one for one in wanting if subscriber_name(one) == choice.name)
        tag = self._table.tag(row.info.tag)
        if tag is None or row.declared is None:
            return None
        sizes = [step.size for step in Range(one.wanted.range_hz, one.wanted.range_size).steps() if step.size]
        most, attributes = row.declared.max_bytes, tag.attributes
        fitting = (size for size in sizes if scaled_bytes(attributes, most, size) <= choice.bytes * (1 + 1e-9))
        return next(fitting, sizes[-1])

    def request(
        self, pattern: str, requested: Profile | None, own: Sequence[Profile] = (), every: int = 1, rate_hz: float = 0.0
    ) -> None:  # fmt: skip
        """Compare a subscriber's profile with what the publishers offer that are there, of a view those of the tag that
        it shows; one without a profile offers whatever it does. `own` are the user's profiles, which may be proposed
        instead. One that takes every n-th message, or so many a second, gets them that much less often, and as
        unevenly as was declared. Raises QosMismatch."""
        if requested is None:
            return
        known = {**built_in(), **{one.name: one for one in own}}
        for tag in self._table.tags(pattern):
            shown = described_view(tag.attributes.schema) if tag.attributes.codec == "view" else None
            for row in self._table.publishers(tag.name if shown is None else shown.of):
                if row.offered is not None and row.alive:
                    jitter_s = row.declared.jitter_s if row.declared is not None else 0.0
                    number = factor(row.offered, every, rate_hz)
                    check(row.offered, requested, known.values(), number, jitter_s)

    def unbacked(self, pattern: str) -> list[str]:
        """Which bounds this node's kernel or limits do not back: their analysis is of threads with schedules. Only of
        tags that other nodes take part in, for this node has threads for those alone."""
        found = []
        for tag in self._table.tags(pattern):
            sched = read(promised(self._table, tag.name)).sched
            nodes = {row.owner for row in self._table.publishers(tag.name)}
            if sched and len(nodes | {row.owner for row in self._table.subscribers(tag.name)}) > 1:
                try:
                    self._granted(sched, self._table.node)
                except QosMismatch as exc:
                    found.append(f"the bound of {tag.name!r} is not backed on this node: {exc}")
        return found[:_MOST_SEARCHED]

    def _judge(self, what: str, publishers: list[PublisherRow], subscribers: list[SubscriberRow]) -> None:
        from ringcast.admission.fidelity import settle  # the analysis, which few daemons ever need
        from ringcast.admission.verdict import judge
        from ringcast.daemon.admitting.declared_system import declared_system

        try:
            found = self._calibration()
            system = declared_system(self._table, found, publishers, subscribers, self.others)
            if len(system.streams) > MOST_STREAMS:
                reason = f"a running daemon judges at most {MOST_STREAMS} streams; plan more by 'ringcast admit'"
                raise AdmissionError("", reason)
            system = settle(system)[0]
            after = judge(system)
        except AdmissionError as exc:
            raise AdmissionRefused(what, (str(exc),)) from exc
        if after.admitted:
            return
        # What others miss already is not the newcomer's doing.
        before = settle(declared_system(self._table, found, [], [], self.others))[0]
        known = {_key(one) for one in judge(before).refused}
        hurt = [one for one in after.refused if _key(one) not in known]
        if hurt:
            raise AdmissionRefused(what, tuple(one.sentence() for one in hurt), self._fits(system, publishers))

    def overtaken(self, row: Declaration, unknown: Collection[Declaration]) -> AdmissionRefused | None:
        """Why a declaration that was let in here must go: `unknown` are earlier ones, by the order that all nodes have
        them in, of which this node knew nothing then. None: it stays."""
        from ringcast.admission.fidelity import settle
        from ringcast.admission.verdict import judge
        from ringcast.daemon.admitting.declared_system import declared_system

        place = declaration_key(row)
        late = {declaration_key(one) for one in unknown}

        def missed(without: Collection[tuple[int, str, int]]) -> dict[tuple[str, str, str], Judged]:
            def counts(one: Declaration) -> bool:
                return declaration_key(one) <= place and declaration_key(one) not in without

            system = declared_system(self._table, self._calibration(), [], [], self.others, counts)
            return {_key(one): one for one in judge(settle(system)[0]).refused}

        try:
            now = missed(())
            if hurt := now.keys() - missed({place}):
                hurt -= missed(late).keys() - missed({*late, place})  # what it did without them too
        except AdmissionError:
            return None
        if not hurt:
            return None
        who = f"a publisher on {row.info.tag!r}" if isinstance(row, PublisherRow) else f"one of {row.info.pattern!r}"
        what = f"{who}, let in while node {min(unknown, key=declaration_key).owner} let in another"
        return AdmissionRefused(what, tuple(now[key].sentence() for key in sorted(hurt)))

    def _fits(self, system: System, publishers: list[PublisherRow]) -> tuple[str, ...]:
        from ringcast.admission.fitting import fits
        from ringcast.admission.verdict import judge

        own = {f" of {self._table.node}#{row.info.id}" for row in publishers}
        found = fits(system, judge(system), deadlines_only=len(system.streams) > _MOST_SEARCHED)
        chosen = [fit for fit in found if not own or any(fit.tag.endswith(one) for one in own)]
        return tuple(fit.sentence() for fit in chosen[:4])


def _key(one: Judged) -> tuple[str, str, str]:
    return one.kind, one.tag, one.name
