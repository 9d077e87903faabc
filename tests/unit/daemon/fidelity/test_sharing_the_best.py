"""Which rings a subscription is shown that wants the best of several streams, and what a range is told."""

from __future__ import annotations

from typing import Any

from ringcast.control.notices import FidelityNow, RingDown, RingUp
from ringcast.model.profile import Profile
from ringcast.scaling.fidelity import Fidelity


def camera(lab: Any, client: int, name: str, fidelity: float, incarnation: int) -> list[Any]:
    lab.open(client, f"cam/{name}")
    _, out = lab.publish_all(client, f"cam/{name}", incarnation=incarnation, offered=Profile(fidelity=fidelity))
    return [send.message for send in out]


def told(sends: list[Any], kind: type) -> list[Any]:
    return [send.message for send in sends if isinstance(send.message, kind)]


def test_it_is_shown_the_best_there_is_and_no_other(lab: Any) -> None:
    camera(lab, 1, "poor", 1, 71)
    camera(lab, 1, "good", 2, 72)
    ups = told(lab.subscribe(2, "cam/*", 1, only_best=True), RingUp)
    assert [(up.info.tag, up.begin) for up in ups] == [("cam/good", None)]
    assert not any(isinstance(message, RingUp) for message in camera(lab, 1, "better", 3, 73))


def test_it_changes_over_at_one_place_and_begins_there(lab: Any) -> None:
    camera(lab, 1, "good", 2, 72)
    lab.subscribe(2, "cam/*", 1, only_best=True)
    camera(lab, 1, "better", 3, 73)
    sharing = lab.local.sharing
    (one,) = sharing.choosing.values()
    one.tag_next = "cam/better"
    (ring,) = sharing.next_rings(one)
    old, new = sharing.rings.of_incarnation(72), sharing.rings.of_incarnation(73)
    old.monitor.next_seq, new.monitor.next_seq = 17, 5
    assert ring is new
    sends = sharing.change_over(one, "cam/better")
    assert [(down.incarnation, down.end, down.instead) for down in told(sends, RingDown)] == [(72, 17, True)]
    assert [(up.info.tag, up.begin) for up in told(sends, RingUp)] == [("cam/better", 5)]
    assert (one.tag_now, one.tag_next) == ("cam/better", "")
    assert sharing.demands("cam/good") == set()
    assert len(sharing.demands("cam/better")) == 1


def test_what_its_publisher_left_is_read_to_the_end(lab: Any) -> None:
    camera(lab, 1, "good", 2, 72)
    camera(lab, 3, "poor", 1, 71)
    lab.subscribe(2, "cam/*", 1, only_best=True)
    lab.local.leave(1)
    (one,) = lab.local.sharing.choosing.values()
    assert told(lab.local.sharing.change_over(one, "cam/poor"), RingDown) == []


def test_others_are_shown_everything(lab: Any) -> None:
    camera(lab, 1, "poor", 1, 71)
    camera(lab, 1, "good", 2, 72)
    assert len(told(lab.subscribe(2, "cam/*", 1), RingUp)) == 2


def test_a_range_is_told_what_it_has_at_once_and_when_it_changes(lab: Any) -> None:
    lab.open(1, "cam/a")
    (now,) = told(lab.subscribe(2, "cam/a", 1, rate_hz=30.0, range_hz=(2.0, 30.0)), FidelityNow)
    assert (now.rate_hz, now.why) == (30.0, "")
    (one,) = lab.local.sharing.ranged.values()
    (now,) = told(lab.local.subscribers.refine(one, Fidelity(4.0, None, "messages were lost")), FidelityNow)
    assert (now.rate_hz, now.why) == (4.0, "messages were lost")
    assert one.options.rate_hz == 4.0
    (row,) = lab.local.table.subscribers("cam/a")
    assert (row.wanted.rate_hz, row.wanted.range_hz) == (4.0, (2.0, 30.0))
