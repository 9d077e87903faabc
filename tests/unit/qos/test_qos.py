"""Profiles: what their file may say, what fits what, and what became of it."""

from __future__ import annotations

import pytest

from ringcast.errors import BadConfiguration, QosMismatch
from ringcast.qos import Monitor, Profile, QualityEvent, built_in, mismatches, nearest, read
from ringcast.qos.matching import check, check_carried, factor
from ringcast.qos.profile import find

MS = 1_000_000


def test_the_built_in_ones_fit_themselves_and_their_transports():
    assert set(built_in()) == {"sensor", "control", "video", "bulk"}
    for one in built_in().values():
        assert mismatches(one, one) == []
        check_carried(one)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[a]\nreliable = true\nperod_s = 1", 3, "did you mean 'period_s'"),
        ("[a]\nperiod_s = 0", 2, "a.period_s: expected `float` > 0.0"),
        ("[a]\npriority = 'urgent'", 2, "a.priority"),
        ("a = 1", 1, "a is not a table"),
        ("[a", 1, "not TOML"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(text, line, says):
    with pytest.raises(BadConfiguration) as caught:
        read(text, "p.toml")
    assert caught.value.line == line
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"reliable": True}, "reliable"),
        ({"ordered": True}, "ordered"),
        ({"history": 5}, "history"),
        ({"period_s": 0.5}, "period_s"),
        ({"latency_s": 1.0}, "latency_s"),
        ({"lease_s": 0.5}, "lease_s"),
    ],
)
def test_who_asks_for_more_than_is_offered(asked, field):
    offered = Profile(ordered=False, history=4, period_s=1.0, lease_s=1.0)
    assert [one.field for one in mismatches(offered, Profile(**{"ordered": False, **asked}))] == [field]


def test_who_asks_for_less_gets_it():
    offered = Profile(reliable=True, history=4, period_s=1.0, latency_s=0.1, lease_s=1.0)
    assert mismatches(offered, Profile(history=2, period_s=1.0, latency_s=0.2, lease_s=2.0)) == []


def test_a_mismatch_names_both_sides_and_the_nearest_that_fits():
    known = built_in()
    with pytest.raises(QosMismatch, match=r"'control'.*'sensor'.*profile 'sensor' fits"):
        check(known["sensor"], known["control"], known.values())
    assert nearest(known["video"], known["control"], known.values()) == known["video"]
    assert nearest(Profile(ordered=False), known["control"], known.values()) is None


def test_a_transport_that_loses_cannot_be_reliable():
    with pytest.raises(QosMismatch, match="may lose messages"):
        check_carried(Profile(name="p", reliable=True, transport="udp"))
    check_carried(Profile(name="p", reliable=True, transport="lateral+nak"))


def test_a_deadline_holds_for_the_messages_that_a_scaled_stream_has():
    offered, requested = Profile(period_s=0.1), Profile(period_s=0.3)
    assert mismatches(offered, requested, every=3) == []
    assert [one.offered for one in mismatches(offered, requested, every=4)] == ["a message every 0.4 s"]
    assert [one.offered for one in mismatches(offered, requested, every=3, jitter_s=0.02)] == ["a message every 0.32 s"]
    known = [Profile(name="a", period_s=0.3), Profile(name="b", period_s=0.5)]
    assert nearest(offered, requested, known, 4).name == "b"
    assert [factor(offered, 1, hz) for hz in (0.0, 20.0, 10.0, 5.0, 3.0)] == [1, 1, 1, 2, 4]
    assert factor(Profile(), 2, 5.0) == 2


def test_what_is_repaired_must_be_held_as_long():
    check_carried(Profile(name="p", history=256, transport="ack"))
    check_carried(Profile(name="p", transport="ack"))
    check_carried(Profile(name="p", history=1, transport="nak"))
    with pytest.raises(QosMismatch, match=r"the last 4 messages.*'ack' repairs 256 packets back.*history of 256"):
        check_carried(Profile(name="p", history=4, transport="ack"))
    with pytest.raises(QosMismatch, match="repairs 16 packets back"):
        check_carried(Profile(name="p", history=8, transport="lateral:r=16"))


def test_an_unknown_profile_names_a_near_one():
    with pytest.raises(ValueError, match="did you mean 'sensor'"):
        find("sensr", built_in())
    own = Profile(name="own")
    assert find(own, built_in()) is own


def test_deadlines_silence_and_losses_are_told_once_each():
    monitor = Monitor(Profile(period_s=0.01, lease_s=0.025), 0)
    assert monitor.look(5 * MS, {7: "a"}, 0) == []
    assert monitor.look(14 * MS, {7: "a"}, 0) == []
    assert monitor.look(16 * MS, {7: "a"}, 0) == [QualityEvent("deadline", 1, 0.011, 7)]
    assert monitor.look(20 * MS, {7: "a"}, 0) == []
    kinds = [event.kind for event in monitor.look(36 * MS, {7: "a"}, 2)]
    assert kinds == ["deadline", "silent", "lost"]
    assert [event.kind for event in monitor.look(37 * MS, {7: "b"}, 2)] == ["alive"]
    assert monitor.look(38 * MS, {7: "b"}, 2) == []


def test_one_silent_publisher_of_two_is_noticed():
    monitor = Monitor(Profile(lease_s=0.025), 0)
    assert monitor.look(1 * MS, {7: 1, 8: 1}, 0) == []
    for ms in range(5, 25, 5):
        assert monitor.look(ms * MS, {7: ms, 8: 1}, 0) == []
    assert monitor.look(30 * MS, {7: 30, 8: 1}, 0) == [QualityEvent("silent", 1, 0.029, 8)]
    assert monitor.look(31 * MS, {7: 30, 8: 2}, 0) == [QualityEvent("alive", 1, 0.030, 8)]


def test_publishers_come_and_go_and_the_tag_may_be_silent_meanwhile():
    monitor = Monitor(Profile(lease_s=0.025), 0)
    assert [event.kind for event in monitor.look(30 * MS, {}, 0)] == ["silent"]
    assert monitor.look(31 * MS, {7: None}, 0) == []  # it is there, and has sent nothing
    assert monitor.look(32 * MS, {7: 1}, 0) == [QualityEvent("alive", 1, 0.032, 7)]
    assert monitor.look(33 * MS, {7: 1, 8: None}, 0) == []
    assert monitor.look(57 * MS, {7: 2, 8: None}, 0) == []
    assert monitor.look(59 * MS, {7: 3, 8: None}, 0) == [QualityEvent("silent", 1, 0.026, 8)]
    assert monitor.look(60 * MS, {7: 4}, 0) == []  # a silent one that left is nobody's concern
    assert monitor.look(61 * MS, {}, 0) == []
    assert monitor.look(90 * MS, {}, 0) == [QualityEvent("silent", 1, 0.03, 0)]


def test_late_messages_are_told_with_their_number():
    monitor = Monitor(Profile(latency_s=0.01), 0, late=2)
    assert monitor.look(1 * MS, {7: 1}, 0, 2) == []
    assert monitor.look(2 * MS, {7: 2}, 0, 5) == [QualityEvent("late", 3, 0.0)]
    assert monitor.look(3 * MS, {7: 3}, 0, 5) == []


def test_a_publisher_that_never_sends_is_late():
    monitor = Monitor(Profile(period_s=0.01), 0)
    assert monitor.look(30 * MS, {}, 0) == [QualityEvent("deadline", 3, 0.03)]


def test_a_profile_makes_class_schedule_and_reservation():
    text = '[arm]\npriority = "high"\nsched = "fifo:30"\nbandwidth = "5mbit"\n[plain]\n'
    known = read(text, "p")
    assert known["arm"].urgency == "high fifo:30 bandwidth:5mbit"
    assert known["plain"].urgency == ""


@pytest.mark.parametrize(("line", "field"), [('sched = "fifo:300"', "sched"), ('bandwidth = "much"', "bandwidth")])
def test_a_schedule_or_bandwidth_that_is_none_is_named_with_its_line(line, field):
    with pytest.raises(BadConfiguration, match=rf"^p:3: arm\.{field}: "):
        read(f"[arm]\nhistory = 1\n{line}\n", "p")
