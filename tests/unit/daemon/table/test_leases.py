"""Tags that nobody uses end after their lease, counted from when they were last seen in use."""

from __future__ import annotations

from ringcast.daemon.table.leases import Leases


def test_a_tag_ends_when_it_was_unused_for_the_whole_lease() -> None:
    leases = Leases(10)
    assert leases.look(["a"], 0) == []
    assert leases.look(["a", "b"], 9) == []
    assert leases.look(["a", "b"], 10) == ["a"]
    assert leases.look(["b"], 19) == ["b"]


def test_use_in_between_begins_it_anew() -> None:
    leases = Leases(10)
    leases.look(["a"], 0)
    leases.look([], 5)
    assert leases.look(["a"], 6) == []
    assert leases.look(["a"], 15) == []
    assert leases.look(["a"], 16) == ["a"]


def test_a_lease_of_nothing_is_for_ever() -> None:
    assert Leases(0).period_s is None
