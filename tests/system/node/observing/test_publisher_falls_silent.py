"""A subscriber is told when its publisher misses the deadline of a profile, falls silent, and is there again."""

from __future__ import annotations

import pytest

from ringcast.qos import Profile


def test_deadline_silence_and_return_are_events(session, eventually):
    tag = session.tag("t")
    sub, pub = tag.subscribe(), tag.publisher()
    seen = []
    with sub.on_quality(seen.append, Profile(name="own", period_s=0.05, lease_s=0.1)) as service:
        pub.send(b"x")
        eventually(lambda: {"deadline", "silent"} <= {event.kind for event in seen})
        pub.send(b"y")
        eventually(lambda: "alive" in {event.kind for event in seen})
        assert [sub.recv(5).data for _ in range(2)] == [b"x", b"y"]
    assert not service.running


def test_lost_messages_are_events(session, eventually):
    tag = session.tag("small", depth=4)
    sub, pub = tag.subscribe(), tag.publisher()
    seen = []
    with sub.on_quality(seen.append, Profile(name="own", period_s=0.05)):
        for _ in range(20):
            pub.send(b"x")
        sub.recv(5)
        eventually(lambda: any(event.kind == "lost" and event.count >= 16 for event in seen))


def test_one_silent_publisher_of_two_is_an_event(session, eventually):
    tag = session.tag("two")
    sub, one, other = tag.subscribe(), tag.publisher(), tag.publisher()
    seen = []
    with sub.on_quality(seen.append, Profile(name="own", lease_s=0.2)):
        other.send(b"once")

        def told():
            one.send(b"x")
            return {event.publisher for event in seen if event.kind == "silent"} == {other.info.incarnation}

        eventually(told)


def test_late_messages_are_events(session, eventually):
    tag = session.tag("late")
    sub, pub = tag.subscribe(), tag.publisher()
    seen = []
    with sub.on_quality(seen.append, Profile(name="own", latency_s=1e-6)):
        pub.send(b"x")
        eventually(lambda: sub._rings.newest() is not None)
        sub.recv(5)  # later than a microsecond after it was sent
        eventually(lambda: [(event.kind, event.count) for event in seen] == [("late", 1)])


def test_an_unknown_profile_is_an_error_at_the_call(session):
    sub = session.tag("t").subscribe()
    with pytest.raises(ValueError, match="did you mean 'sensor'"):
        sub.on_quality(print, "sensr")
