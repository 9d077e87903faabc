"""Two nodes let somebody in at once: both know which is the later one, and its own node takes its right away."""

from __future__ import annotations

import asyncio

import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import Cost, Costs
from ringcast.control.notices import RightTaken
from ringcast.control.refusal import refusal
from ringcast.daemon.admitting.overtaken import Overtaken
from ringcast.daemon.table.rows import PublisherRow, declaration_key
from ringcast.daemon.table.table import TagTable
from ringcast.errors import AdmissionRefused
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo

CORE = Calibration(Machine("p", 1, "k", "v"), Costs(publish=Cost(fixed_s=1e-4)), 0.0, "now", True)
HALF = Declared(0.1, 1000, 0.06)
"""More than half of a core: one fits, two do not."""


def remote(node: str, tag: str, since: int, said: Declared = HALF, number: int = 7) -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=tag, incarnation=4711, pid=1, user="", program="")
    return PublisherRow(info=info, depth=1, capacity_bytes=1, declared=said, since=since)


class Seen:
    def __init__(self, node, settled=lambda: True):
        self.node, self.local, self.sent, self.changes = node, node.local, [], 0
        self.local.admitting._calibration = lambda: CORE
        self.overtaken = Overtaken(self.local, self.sent.extend, self._changed, settled)

    def _changed(self):
        self.changes += 1

    def hears(self, row):
        """Of another node's publisher, whose subscriber is here and computes on this node's core."""
        other = TagTable(row.owner, 1)
        other.put(row)

        async def run():
            changes = self.local.table.apply(other.delta(self.local.table.digest()))
            self.overtaken.changed(changes)
            self.overtaken.judge()
            self.overtaken.close()

        asyncio.run(run())

    @property
    def taken(self):
        return [(send.client, send.message) for send in self.sent if isinstance(send.message, RightTaken)]


@pytest.fixture
def seen(lab):
    """Subscribers here to `t` and `u`, whose handling needs more than half of the core each."""
    lab.open(1, "u")
    lab.open(1, "t")
    costly = Costs(publish=Cost(fixed_s=1e-4), deliver=Cost(fixed_s=0.06))
    seen = Seen(lab)
    seen.local.admitting._calibration = lambda: Calibration(Machine("p", 1, "k", "v"), costly, 0.0, "now", True)
    lab.subscribe(2, "t", 1, deadline_s=0.095)
    lab.subscribe(2, "u", 2, deadline_s=0.099)
    return seen


def test_declarations_know_what_was_there_before_them(lab):
    lab.local.admitting._calibration = lambda: CORE
    lab.open(1, "t")
    lab.publish(1, "t", declared=Declared(1.0, 10))
    lab.subscribe(2, "t", 1, deadline_s=0.5)
    assert [row.since for row in lab.local.table.declarations()] == [1, 2]
    assert lab.local.table.next_since() == 3


def test_the_later_of_two_goes_and_is_told_why(seen):
    number = seen.node.publish(1, "t", declared=Declared(0.1, 1000))
    row = next(row for row in seen.local.table.declarations() if row.key == f"pub:{number}")
    earlier = remote("a", "u", row.since, Declared(0.1, 1000))
    assert declaration_key(earlier) < declaration_key(row)
    seen.hears(earlier)
    ((client, notice),) = seen.taken
    assert (client, notice.publisher) == (1, number)
    why = refusal(notice.why)
    assert isinstance(why, AdmissionRefused)
    assert "let in while node a let in another" in str(why)
    assert [row.owner for row in seen.local.table.all_publishers() if row.alive] == ["a"]
    assert seen.changes == 1


def test_the_earlier_of_two_stays(seen):
    seen.node.publish(1, "t", declared=Declared(0.1, 1000))
    seen.hears(remote("z", "u", 3, Declared(0.1, 1000)))
    assert seen.taken == []
    assert len(seen.local.table.declarations()) == 4  # the other node judges, and takes its own back


def test_two_that_fit_together_both_stay(seen):
    seen.node.publish(1, "t", declared=Declared(0.1, 1000))
    seen.hears(remote("a", "elsewhere", 1, Declared(0.1, 1000)))
    assert seen.taken == []


def test_what_would_be_refused_anyway_by_now_is_not_the_other_ones_doing(seen):
    seen.node.publish(1, "t", declared=Declared(0.1, 1000))
    slower = Costs(deliver=Cost(fixed_s=0.2))
    seen.local.admitting._calibration = lambda: Calibration(Machine("p", 1, "k", "v"), slower, 0.0, "now", True)
    seen.hears(remote("a", "elsewhere", 1, Declared(0.1, 1000)))
    assert seen.taken == []


def test_a_subscriber_that_came_later_goes_too(lab):
    lab.open(1, "t")
    lab.open(1, "u")
    seen = Seen(lab)
    costly = Costs(deliver=Cost(fixed_s=0.06))
    seen.local.admitting._calibration = lambda: Calibration(Machine("p", 1, "k", "v"), costly, 0.0, "now", True)
    lab.subscribe(2, "u", 5, deadline_s=0.099)
    lab.publish(1, "t", declared=Declared(0.1, 1000))
    lab.subscribe(2, "t", 6, deadline_s=0.095)
    seen.hears(remote("a", "u", 2, Declared(0.1, 1000)))
    ((client, notice),) = seen.taken
    assert (client, notice.subscription) == (2, 6)


def test_nobody_is_judged_again_while_the_other_node_is_not_known_yet(seen):
    seen.overtaken._settled = lambda: False
    number = seen.node.publish(1, "t", declared=Declared(0.1, 1000))
    seen.hears(remote("a", "u", 1, Declared(0.1, 1000)))
    assert seen.taken == []
    seen.overtaken._settled = lambda: True
    seen.overtaken.judge()
    assert [notice.publisher for _, notice in seen.taken] == [number]


def test_what_takes_anothers_place_was_declared_with_that_one(lab):
    lab.local.admitting._calibration = lambda: CORE
    lab.open(1, "t")
    said = Declared(1.0, 10)
    first = lab.publish(1, "t", declared=said)
    lab.publish(2, "t", declared=said)
    anew = lab.publish(1, "t", declared=said, instead=first)
    since = {row.key: row.since for row in lab.local.table.declarations()}
    assert since[f"pub:{anew}"] == since[f"pub:{first}"] == 1
