"""Of a range of rates, the best that fits."""

from __future__ import annotations

import msgspec
import pytest

from ringcast.admission import AdmissionError, Cost, Costs, Link, Node, Stream, Subscriber, System
from ringcast.admission.checks import check
from ringcast.admission.fidelity import settle
from ringcast.admission.verdict import judge


def camera(range_hz: tuple[float, float], tag: str = "camera", deadline_s: float = 0.5) -> Stream:
    wanted = Subscriber(name="s", node="b", deadline_s=deadline_s, rate_hz=range_hz)
    return Stream(tag=tag, node="a", period_s=1 / 30, bytes=10_000.0, subscribers=(wanted,))


def system(*streams: Stream, bandwidth: float) -> System:
    link = Link(a="a", b="b", bandwidth=bandwidth)
    return System(nodes=(Node(name="a"), Node(name="b")), links=(link,), streams=streams, costs=Costs())


def test_with_room_it_gets_the_best():
    settled, (choice,) = settle(system(camera((2, 30)), bandwidth=12.5e6))
    assert (choice.every, choice.hz, choice.fits) == (1, pytest.approx(30), True)
    assert judge(settled).admitted


def test_a_narrow_link_leaves_less_and_more_comes_with_more():
    rates = []
    for bandwidth in (5e4, 1e5, 2e5, 4e5):
        settled, (choice,) = settle(system(camera((2, 30)), bandwidth=bandwidth))
        assert choice.fits
        assert judge(settled).admitted
        rates.append(choice.hz)
        if choice.every > 1:
            better = choice.every - 1
            (stream,) = settled.streams
            (one,) = stream.subscribers
            richer = Stream(
                tag="camera", node="a", period_s=1 / 30, bytes=10_000.0,
                subscribers=(Subscriber(name="s", node="b", deadline_s=one.deadline_s, every=better),),
            )  # fmt: skip
            assert not judge(system(richer, bandwidth=bandwidth)).admitted
    assert rates == sorted(rates)
    assert 2 <= rates[0] < rates[-1]


def test_not_even_the_least():
    _, (choice,) = settle(system(camera((10, 30)), bandwidth=2e4))
    assert not choice.fits
    assert "not even 10" in choice.sentence()


def test_the_shorter_deadline_chooses_first_and_leaves_others_their_least():
    first, second = camera((2, 30), "late", 0.9), camera((2, 30), "soon", 0.5)
    settled, choices = settle(system(first, second, bandwidth=2.5e5))
    assert judge(settled).admitted
    assert [choice.tag for choice in choices] == ["soon", "late"]
    assert choices[0].hz >= choices[1].hz >= 2


def test_of_equals_those_that_were_there_first_choose_first():
    """By their numbers, not letter by letter; 0 is one that only asks whether it may come."""
    wanted = [Subscriber(name=f"b#{n}", node="b", deadline_s=10.0, sizes=(200.0, 10_000.0)) for n in (0, 10, 9)]
    stream = Stream(tag="camera", node="a", period_s=0.025, bytes=10_000.0, subscribers=tuple(wanted))
    costs = Costs(deliver=Cost(per_byte_s=3e-6))
    asked = msgspec.structs.replace(system(stream, bandwidth=12.5e6), costs=costs)
    choices = settle(asked)[1]
    assert [choice.name for choice in choices] == ["b#9", "b#10", "b#0"]
    assert choices[0].bytes > choices[-1].bytes


def test_a_range_the_wrong_way_round():
    with pytest.raises(AdmissionError, match="from the least to the most"):
        check(system(camera((30, 2)), bandwidth=1e6))


def sized(sizes: tuple[float, float], rate_hz: tuple[float, float] | None = None) -> Stream:
    wanted = Subscriber(name="s", node="b", deadline_s=0.5, sizes=sizes, rate_hz=rate_hz)
    return Stream(tag="camera", node="a", period_s=1 / 30, bytes=10_000.0, subscribers=(wanted,))


def test_a_narrow_link_leaves_smaller_ones_and_larger_come_with_more():
    found = []
    for bandwidth in (5e4, 1e5, 2e5, 4e5):
        settled, (choice,) = settle(system(sized((1000, 10_000)), bandwidth=bandwidth))
        assert choice.fits
        assert judge(settled).admitted
        assert settled.streams[0].subscribers[0].scaled_bytes == choice.bytes
        found.append(choice)
        if not choice.best:
            larger = Subscriber(name="s", node="b", deadline_s=0.5, scaled_bytes=choice.bytes * 1.05)
            stream = Stream(tag="camera", node="a", period_s=1 / 30, bytes=10_000.0, subscribers=(larger,))
            assert not judge(system(stream, bandwidth=bandwidth)).admitted
    sizes = [choice.bytes for choice in found]
    assert sizes == sorted(sizes)
    assert 1000 <= sizes[0] < sizes[-1] == 10_000
    assert found[-1].best
    assert "bytes a message, of 1000 to 10000" in found[0].sentence()


def test_rates_and_sizes_fall_together():
    _, (best,) = settle(system(sized((1000, 10_000), (3, 30)), bandwidth=1e6))
    assert (best.every, best.bytes, best.best) == (1, 10_000, True)
    settled, (choice,) = settle(system(sized((1000, 10_000), (3, 30)), bandwidth=1e5))
    assert judge(settled).admitted
    assert 1 < choice.every < 10
    assert 1000 < choice.bytes < 10_000
    assert choice.bytes / 10_000 == pytest.approx(1 / choice.every, rel=0.5)


def test_not_even_the_smallest():
    _, (choice,) = settle(system(sized((5000, 10_000)), bandwidth=2e4))
    assert not choice.fits
    assert "not even 5000 bytes a message" in choice.sentence()


@pytest.mark.parametrize("wanted", [{"sizes": (2000.0, 1000.0)}, {"sizes": (1000.0, 2000.0), "scaled_bytes": 5.0}])
def test_a_range_of_sizes_that_makes_no_sense(wanted):
    one = Subscriber(name="s", node="b", **wanted)
    stream = Stream(tag="camera", node="a", period_s=0.1, bytes=10_000.0, subscribers=(one,))
    with pytest.raises(AdmissionError, match="from the least to the most"):
        check(system(stream, bandwidth=1e6))
