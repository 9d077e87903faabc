"""Carriers side by side through phases, and switches between transports under kernel loss, on a network of
namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_fakes import CountedSteps

from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.adaptation import real, switching
from ringcast.lab.testbed.network import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@pytest.fixture(scope="module")
def network() -> Iterator[FieldNetwork]:
    with FieldNetwork(switching.RECEIVERS + 1, publishers=2) as network:
        yield network


def test_every_carrier_lives_through_every_phase(network: FieldNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "DRAIN_S", 3.0)  # a machine with more to do may pause for long
    plan = [
        real.RealPhase("calm", 60),
        real.RealPhase("one more", 60, receivers=real.FEW + 1, loss=0.02),
        real.RealPhase("thin", 40, line=real.THIN),
        real.RealPhase("bursts", 60, loss=0.1, burst=4.0),
    ]
    lived = real.Living(network, (real.ADAPTIVE, "multicast+nak"), CountedSteps()).live(plan)
    assert len(lived.began) == 4
    for carrier in (real.ADAPTIVE, "multicast+nak"):
        calm, more, thin, bursts = lived.came[carrier]
        sent = [[one.sent for one in came] for came in (calm, more, thin, bursts)]
        assert sent == [[30] * 3, [30] * 4, [20] * 3, [30] * 3], "at each receiver"
        assert not any(one.twice for came in (calm, more, thin, bursts) for one in came)
    got = [[len(one.latencies_ms) for one in came] for came in lived.came["multicast+nak"]]
    assert got == [[30] * 3, [30] * 4, [20] * 3, [30] * 3], "it asks again"


def test_switches_lose_nothing_and_bring_nothing_twice(network: FieldNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    course = switching.Course("x", 0.05, ("multicast+nak", "multicast", "tcp", "multicast+parity:r=4,c=3", "nak"))
    monkeypatch.setattr(switching, "COURSES", (course,))
    (found,) = switching.run(network, 1, CountedSteps())
    assert [one.transport for one in found.carried] == list(course.transports)
    assert (found.lost(), found.twice()) == (0, 0)
    assert all(len(got) > 4 * switching.SOME for got in found.received)
