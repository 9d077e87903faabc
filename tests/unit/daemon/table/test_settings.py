"""Settings of a tag that come and go: what is remembered of them is bounded, and halves that meet still agree."""

from __future__ import annotations

from ringcast.daemon.table.rows import TagRow
from ringcast.daemon.table.settings import MOST_TAKEN_BACK, changed, merged
from ringcast.model.place import Setting
from ringcast.model.tag import TagAttributes

ROW = TagRow(name="t", attributes=TagAttributes(), primary="a")


def test_what_was_set_for_subscribers_that_left_is_forgotten() -> None:
    row = ROW
    for number in range(1000):
        row = changed(row, f"b#{number}", "node:c", None, {f"b#{number}"})
    assert list(row.settings) == list(row.stamps) == ["b#999"]
    row = changed(row, "", None, "tcp", {"b#999"})
    assert row.settings == {"b#999": Setting(at="node:c"), "": Setting(transport="tcp")}
    assert row.stamps[""] == (1001, "a"), "numbers go on, whatever was forgotten"


def test_of_settings_that_were_taken_back_the_latest_are_remembered() -> None:
    row = changed(ROW, "kept", "subscriber", None, ())
    for number in range(2 * MOST_TAKEN_BACK):
        row = changed(changed(row, f"n{number}", None, "tcp", ()), f"n{number}", None, "", ())
    assert row.settings == {"kept": Setting(at="subscriber")}
    assert len(row.stamps) == MOST_TAKEN_BACK + 1
    assert f"n{2 * MOST_TAKEN_BACK - 1}" in row.stamps
    assert "n0" not in row.stamps


def test_halves_that_remember_different_ones_agree_when_they_meet() -> None:
    one, other = ROW, TagRow(name="t", attributes=TagAttributes(), primary="b")
    for number in range(MOST_TAKEN_BACK):
        one = changed(changed(one, f"one{number}", None, "tcp", ()), f"one{number}", None, "", ())
        other = changed(changed(other, f"other{number}", None, "tcp", ()), f"other{number}", None, "", ())
    here, there = merged(one, [other]), merged(other, [one])
    assert here.stamps == there.stamps
    assert len(here.stamps) == MOST_TAKEN_BACK
    assert merged(here, [one, other]) is here, "nothing is newer: the other row may be withdrawn"


def test_who_sets_a_place_by_hand_after_a_plan_has_the_last_word() -> None:
    planned = changed(ROW, "b#1", "node:c", None, {"b#1"}, planned=True)
    assert planned.settings == {"b#1": Setting(at="node:c", planned=True)}
    assert changed(planned, "b#1", None, "tcp", {"b#1"}).settings["b#1"].planned
    assert changed(planned, "b#1", "node:c", None, {"b#1"}).settings == {"b#1": Setting(at="node:c")}
    assert changed(planned, "b#1", "", None, {"b#1"}).settings == {}
