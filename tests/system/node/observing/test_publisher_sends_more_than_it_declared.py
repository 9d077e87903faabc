"""A declared publisher is held to what it declared in its own process, and let in only if all deadlines are kept."""

from __future__ import annotations

import itertools
import logging
from importlib import metadata

import pytest

import ringcast
from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Cost, Costs

COST = Cost(fixed_s=1e-4)


@pytest.fixture
def session(make_daemon, tmp_path):
    here = this_machine(metadata.version("ringcast"))
    costs = Costs(publish=COST, send=COST, receive=COST, deliver=COST)
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, costs, 1e-4, "now", True))
    daemon = make_daemon(XDG_CACHE_HOME=str(tmp_path))
    with ringcast.connect(socket=daemon.socket_path, start=False) as made:
        yield made


def test_what_is_too_much_is_dropped_counted_and_told(session, caplog):
    tag = session.tag("t")
    sub = tag.subscribe()
    pub = tag.publisher(period_s=1000.0, max_bytes=10)
    with caplog.at_level(logging.WARNING, "ringcast"):
        assert pub.send(b"first") == 0
        assert pub.send(b"too soon") == -1
        assert pub.send(b"x" * 11) == -1
        assert pub.send_many([b"a", b"b"]) == -1
    assert pub.counters()["excess_dropped"] == 4
    assert pub.counters()["sent"] == 1
    assert sub.recv(5).data == b"first"
    with pytest.raises(ringcast.WouldBlock):
        sub.recv_nowait()
    assert caplog.text.count("sends more than it declared") == 1
    assert pub.declared.max_bytes == 10


def test_what_is_too_soon_waits(session):
    tag = session.tag("t")
    sub = tag.subscribe()
    pub = tag.publisher(period_s=0.02, max_bytes=10, jitter_s=0.0, on_excess="wait")
    assert [pub.send(b"x") for _ in range(4)] == [0, 1, 2, 3]
    times = [sub.recv(5).sent_ns for _ in range(4)]
    assert all(later - sooner >= 19_000_000 for sooner, later in itertools.pairwise(times))
    assert pub.counters()["excess_waited"] >= 1
    with pytest.raises(ringcast.MessageTooLarge):
        pub.send(b"x" * 11)
    with pytest.raises(ringcast.MessageTooLarge):
        pub.reserve(11)


def test_values_are_measured_encoded(session):
    tag = session.tag("values", codec="json")
    sub = tag.subscribe()
    pub = tag.publisher(period_s=1000.0, max_bytes=10)
    assert pub.send({"much": "too long"}) == -1
    assert pub.send({"a": 1}) == 0
    assert sub.recv(5).data == {"a": 1}


def test_a_deadline_is_promised_or_refused_with_the_numbers(session):
    tag = session.tag("t")
    pub = tag.publisher(period_s=1.0, max_bytes=100, compute_s=0.01)
    with tag.subscribe(deadline_s=0.5) as sub:
        pub.send(b"x")
        assert sub.recv(5).data == b"x"
    with pytest.raises(ringcast.AdmissionRefused, match="missed by") as caught:
        tag.subscribe(deadline_s=0.005)
    assert any("a deadline of" in fit for fit in caught.value.fits)


def test_a_publisher_that_does_not_fit_is_refused_and_others_go_on(session):
    tag = session.tag("t")
    pub = tag.publisher(period_s=1.0, max_bytes=100, compute_s=0.01)
    with tag.subscribe(deadline_s=0.5):
        other = session.tag("u")
        with other.subscribe(deadline_s=0.3), pytest.raises(ringcast.AdmissionRefused, match="a publisher on 'u'"):
            other.publisher(period_s=0.25, max_bytes=100, compute_s=0.4)
        assert other.publishers() == []
        assert pub.send(b"goes on") == 0


@pytest.mark.parametrize("wrong", [{"period_s": 1.0}, {"max_bytes": 3}, {"period_s": -1.0, "max_bytes": 3}])
def test_half_a_declaration_is_an_error_at_the_call(session, wrong):
    with pytest.raises(ValueError, match="period_s"):
        session.tag("t").publisher(**wrong)


def test_who_declares_nothing_sends_by_the_native_method(session):
    pub = session.tag("t").publisher()
    assert type(pub.send).__name__ == type(pub._ring.send).__name__
    assert pub.declared is None
