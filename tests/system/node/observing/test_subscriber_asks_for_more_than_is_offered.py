"""Profiles: what a subscriber asks for is compared with what publishers offer, and makes its settings."""

from __future__ import annotations

import pytest

import ringcast
from ringcast.model.policy import Periodic
from ringcast.qos import Profile


def test_more_than_is_offered_names_both_sides_and_what_fits(session):
    tag = session.tag("t")
    pub = tag.publisher(profile="sensor")
    with pytest.raises(ringcast.QosMismatch, match=r"'control'.*'sensor'.*profile 'sensor' fits"):
        tag.subscribe(profile="control")
    with tag.subscribe(profile="sensor") as sub:
        pub.send(b"x")
        assert sub.recv(5).data == b"x"


def test_a_profile_makes_settings(session):
    tag = session.tag("t")
    kept = tag.publisher(profile="bulk")
    with tag.subscribe(profile="bulk") as sub:
        assert sub.reliable
    with tag.subscribe() as sub:
        assert not sub.reliable
    assert not kept.closed


def test_a_publisher_without_a_profile_refuses_nobody(session):
    tag = session.tag("t")
    pub = tag.publisher()
    with tag.subscribe(profile="control") as sub:
        pub.send(b"x")
        assert sub.recv(5).data == b"x"


def test_one_of_your_own(session):
    kept = session.tag("t").publisher(profile="sensor")
    with pytest.raises(ringcast.QosMismatch, match="'own'"):
        session.tag("t").subscribe(profile=Profile(name="own", period_s=0.01))
    assert kept.send(b"x") == 0


def test_profiles_of_a_file(session, tmp_path, monkeypatch):
    path = tmp_path / "profiles.toml"
    path.write_text("[slow]\nperiod_s = 9.0\nhistory = 100\nlatency_s = 0.01\nlease_s = 0.1\n")
    monkeypatch.setenv("RINGCAST_PROFILES", str(path))
    tag = session.tag("t")
    kept = tag.publisher(profile="slow")
    with pytest.raises(ringcast.QosMismatch, match="a message every 9 s"):
        tag.subscribe(profile="video")
    with pytest.raises(ValueError, match="did you mean 'slow'"):
        tag.publisher(profile="slwo")
    assert not kept.closed


def test_the_nearest_may_be_one_of_your_own(session, tmp_path, monkeypatch):
    path = tmp_path / "profiles.toml"
    path.write_text("[nearly]\nperiod_s = 0.2\nlatency_s = 0.11\nlease_s = 1.0\nhistory = 1\n")
    monkeypatch.setenv("RINGCAST_PROFILES", str(path))
    tag = session.tag("t")
    kept = tag.publisher(profile=Profile(name="own", period_s=0.2, latency_s=0.1, lease_s=1.0, history=1))
    with pytest.raises(ringcast.QosMismatch, match=r"'sensor'.*'own'.*profile 'nearly' fits"):
        tag.subscribe(profile="sensor")
    assert not kept.closed


def test_under_a_policy_the_tags_own_publishers_are_compared(session):
    tag = session.tag("t")
    kept = tag.publisher(profile="sensor")
    with pytest.raises(ringcast.QosMismatch, match=r"'control'.*'sensor'"):
        tag.subscribe(profile="control", policy=Periodic(0.1))
    with pytest.raises(ValueError, match="no deadline can be promised"):
        tag.subscribe(deadline_s=0.1, policy=Periodic(0.1))
    with tag.subscribe(profile="sensor", policy=Periodic(0.05)) as sub:
        kept.send(b"x")
        assert sub.recv(10).data == b"x"


@pytest.mark.parametrize("pattern", ["t/a", "t/*"])
def test_the_session_asks_as_a_tag_does(session, pattern):
    kept = session.tag("t/a").publisher(profile="sensor")
    with pytest.raises(ringcast.QosMismatch, match=r"'control'.*'sensor'"):
        session.subscribe(pattern, profile="control")
    with pytest.raises(ValueError, match="deadline_s is seconds above 0"):
        session.subscribe(pattern, deadline_s=-1.0)
    with session.subscribe(pattern, profile="sensor") as sub:
        kept.send(b"x")
        assert sub.recv(5).data == b"x"
