"""A new publisher's ring is held for whoever wanted all of it before, until each has a place in it or wants none."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.control.notices import RingUp
from ringcast.control.requests import Attached, DestroyTag, Unpublish, Unsubscribe
from ringcast.daemon.table.rows import SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.identity import SubscriberInfo

RING = 77


class Elsewhere:
    """Another node, with subscribers of its own."""

    def __init__(self, lab: Any, name: str) -> None:
        self._lab, self._table = lab, TagTable(name, 1)

    def subscribe(self, number: int, *, reliable: bool = True) -> SubscriberRow:
        info = SubscriberInfo(
            id=number, node=self._table.node, pattern="lab/*", pid=1, user="u", reliable=reliable
        )  # fmt: skip
        row = SubscriberRow(info=info)
        self._table.put(row)
        self._tell()
        return row

    def unsubscribe(self, row: SubscriberRow) -> None:
        self._table.remove(row.key)
        self._tell()

    def _tell(self) -> None:
        table = self._lab.local.table
        table.set_present(self._table.node, True)
        self._lab.local.changed(table.apply(self._table.delta(table.digest())))


def is_held(lab: Any) -> bool:
    return RING in lab.places


def attached(lab: Any, client: int, subscription: int) -> None:
    lab.ask(client, Attached(id=0, subscription=subscription, ring=RING))


def test_until_all_subscribers_here_have_a_place(lab: Any) -> None:
    lab.subscribe(2, "lab/temp", 1, reliable=True)
    lab.subscribe(3, "lab/*", 1, reliable=True)
    lab.subscribe(3, "lab/*", 2)
    _, out = lab.publish_all(1, "lab/temp", incarnation=RING)
    assert [send.message.held for send in out if isinstance(send.message, RingUp)] == [True] * 3
    attached(lab, 2, 1)
    assert is_held(lab)
    attached(lab, 3, 2)  # for whom nobody waits
    assert is_held(lab)
    attached(lab, 3, 1)
    assert not is_held(lab)


@pytest.mark.parametrize("leave", ["unsubscribes", "is gone"])
def test_not_for_one_that_leaves(lab: Any, leave: str) -> None:
    lab.subscribe(2, "lab/temp", 1, reliable=True)
    lab.publish(1, "lab/temp", incarnation=RING)
    if leave == "unsubscribes":
        lab.ask(2, Unsubscribe(id=1, subscription=1))
    else:
        lab.local.leave(2)
    assert not is_held(lab)


def test_for_one_that_comes_meanwhile(lab: Any) -> None:
    lab.subscribe(2, "lab/temp", 1, reliable=True)
    lab.publish(1, "lab/temp", incarnation=RING)
    lab.subscribe(3, "lab/temp", 1, reliable=True)
    attached(lab, 2, 1)
    assert is_held(lab)
    attached(lab, 3, 1)
    assert not is_held(lab)


def test_until_other_nodes_have_their_channels(lab: Any) -> None:
    for name in ("n2", "n3"):
        Elsewhere(lab, name).subscribe(1)
    lab.publish(1, "lab/temp", incarnation=RING)
    lab.local.sharing.taken("n2", RING)
    lab.local.sharing.taken("n2", RING)
    lab.local.sharing.taken("nobody", RING)
    assert is_held(lab)
    lab.local.sharing.taken("n3", RING)
    assert not is_held(lab)


def test_not_for_a_node_whose_subscribers_left(lab: Any) -> None:
    other = Elsewhere(lab, "n2")
    rows = [other.subscribe(1), other.subscribe(2), other.subscribe(3, reliable=False)]
    lab.publish(1, "lab/temp", incarnation=RING)
    other.unsubscribe(rows[0])
    assert is_held(lab)
    other.unsubscribe(rows[1])
    assert not is_held(lab)


def test_not_for_those_who_may_lose_some(lab: Any) -> None:
    lab.subscribe(2, "lab/temp", 1)
    lab.subscribe(2, "lab/temp", 2, role="history", reliable=True)
    Elsewhere(lab, "n2").subscribe(1, reliable=False)
    lab.publish(1, "lab/temp", incarnation=RING)
    assert not is_held(lab)


def test_not_where_publishers_do_not_wait(lab: Any) -> None:
    lab.open(1, "lab/hasty", max_wait_s=0.0)
    lab.subscribe(2, "lab/*", 1, reliable=True)
    lab.publish(1, "lab/hasty", incarnation=RING)
    assert not is_held(lab)


def test_not_when_the_publisher_is_refused(lab: Any) -> None:
    lab.subscribe(2, "lab/temp", 1, reliable=True)
    assert lab.publish_all(1, "lab/temp", incarnation=RING, capacity_bytes=1 << 20)[0] == 0
    assert not is_held(lab)


def row_of(lab: Any) -> Any:
    return next(iter(lab.local.table.publishers("lab/temp")), None)


def test_one_that_leaves_stays_for_nodes_without_a_channel(lab: Any) -> None:
    asked: list[int] = []
    lab.local.publishers._on_leaving = asked.append
    for name in ("n2", "n3"):
        Elsewhere(lab, name).subscribe(1, reliable=False)
    publisher = lab.publish(1, "lab/temp", incarnation=RING)
    lab.monitor(publisher).next_seq = 9
    lab.local.leave(1)
    assert asked == [RING]
    lab.local.publishers.taken("n2", RING)
    assert row_of(lab).alive
    lab.local.publishers.taken("n3", RING)
    assert (row_of(lab).alive, row_of(lab).end) == (False, 9)


@pytest.mark.parametrize("why", ["time is up", "its subscriber left"])
def test_one_that_leaves_stays_no_longer_than_it_must(lab: Any, why: str) -> None:
    other = Elsewhere(lab, "n2")
    row = other.subscribe(1)
    lab.publish(1, "lab/temp", incarnation=RING)
    lab.local.leave(1)
    assert row_of(lab).alive
    if why == "time is up":
        lab.local.publishers.wait_no_longer(RING)
    else:
        other.unsubscribe(row)
    assert not row_of(lab).alive


def test_one_that_all_others_have_leaves_at_once(lab: Any) -> None:
    Elsewhere(lab, "n2").subscribe(1)
    publisher = lab.publish(1, "lab/temp", incarnation=RING)
    lab.local.publishers.taken("n2", RING)
    lab.ask(1, Unpublish(id=1, publisher=publisher))
    assert not row_of(lab).alive


def test_one_that_sent_nothing_leaves_at_once(lab: Any) -> None:
    Elsewhere(lab, "n2").subscribe(1)
    publisher = lab.publish(1, "lab/temp", incarnation=RING)
    lab.monitor(publisher).sent = 0
    lab.local.leave(1)
    assert row_of(lab) is None


def test_one_that_is_leaving_goes_with_its_tag(lab: Any) -> None:
    Elsewhere(lab, "n2").subscribe(1)
    lab.publish(1, "lab/temp", incarnation=RING)
    lab.local.leave(1)
    lab.ask(2, DestroyTag(id=1, name="lab/temp", force=True))
    assert row_of(lab) is None
    lab.local.publishers.wait_no_longer(RING)
    assert row_of(lab) is None
