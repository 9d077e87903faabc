"""Which streams of another node their only reader may receive itself."""

from __future__ import annotations

import pytest

from ringcast.daemon.intakes.sole_reader import MOST_SUBSCRIPTIONS, may_receive
from ringcast.daemon.rings.demand import Demand

NAK = Demand(at="", transport="nak")


@pytest.mark.parametrize("transport", ["nak", "nak:patience=20ms", "lossy+nak:loss=5%,seed=1"])
def test_the_whole_stream_by_datagrams_that_are_asked_for_again(transport: str) -> None:
    assert may_receive("lab/x", NAK._replace(transport=transport), 1)


@pytest.mark.parametrize(
    "transport", ["udp", "tcp", "multicast", "multicast+nak", "lateral+nak:r=4,c=3", "ack", "lateral"]
)
def test_other_transports_stay_with_the_daemon(transport: str) -> None:
    assert not may_receive("lab/x", NAK._replace(transport=transport), 1)


@pytest.mark.parametrize(
    "demand",
    [
        NAK._replace(every=2), NAK._replace(at="node:c"), NAK._replace(reliable=True), NAK._replace(size=(8, 8)),
        NAK._replace(rate_hz=3.0), NAK._replace(depth=5), NAK._replace(priority="high"),
    ],
)  # fmt: skip
def test_what_is_scaled_kept_reliable_or_urgent_stays_with_the_daemon(demand: Demand) -> None:
    assert not may_receive("lab/x", demand, 1)


def test_neither_wildcards_nor_programs_with_many_subscriptions() -> None:
    assert not may_receive("lab/*", NAK, 1)
    assert may_receive("lab/x", NAK, MOST_SUBSCRIPTIONS)
    assert not may_receive("lab/x", NAK, MOST_SUBSCRIPTIONS + 1)
