"""Round trips beside those of peers: from samples to rows."""

from __future__ import annotations

from lab_fakes import named

from ringcast.lab.push_pull import peer_round_trips
from ringcast.lab.testbed.peers import MISSING


def wire_batches(ours: int, peer: int | None, bare: int = 100_00):
    found = {}
    for where in (peer_round_trips.ONE, peer_round_trips.TWO):
        found[where, peer_round_trips.OURS], found[where, peer_round_trips.BARE] = [[ours] * 50] * 2, [[bare] * 50] * 2
        if peer:
            found[where, "slow"], found[where, "fast"] = [[peer * 2] * 50] * 2, [[peer] * 50] * 2
    return found


def test_the_fastest_peer_is_the_reference():
    findings = peer_round_trips.conclude(wire_batches(20_000, 46_000, bare=12_500), {})
    row = named(findings, "all on one core: 2.3 times faster")
    assert "(fast)" in row.name
    assert (row.value, row.reference, row.target, row.met) == (20.0, 46.0, 20.0, True)
    assert named(findings, "each node on its own core: 1.6 times faster").met is True
    assert named(findings, "at most 1.6 times").met is True


def test_too_slow_is_not_met():
    findings = peer_round_trips.conclude(wire_batches(23_000, 46_000), {})
    assert named(findings, "all on one core: 2.3 times faster").met is False
    assert named(findings, "at most 1.6 times").met is False


def test_without_peers_rows_say_how_to_get_them_and_judge_nothing():
    findings = peer_round_trips.conclude(wire_batches(20_000, None), {"zenoh": "cannot import"})
    row = named(findings, "all on one core: 2.3 times faster")
    assert MISSING in row.name
    assert (row.value, row.reference, row.target, row.met) == (20.0, None, None, None)
    assert findings.notes == ["zenoh is left out: cannot import"]


def test_on_one_core_the_line_for_two_is_there_and_not_measured():
    found = {key: value for key, value in wire_batches(20_000, 46_000).items() if key[0] == peer_round_trips.ONE}
    row = named(peer_round_trips.conclude(found, {}), "each node on its own core")
    assert (row.value, row.met) == (None, None)
