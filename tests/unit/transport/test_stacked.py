"""Which transports share a receiving end."""

from __future__ import annotations

from ringcast.transport.stacked import Stacked


def test_those_by_multicast_do_not_share_one_with_the_others() -> None:
    assert len({Stacked.of(text).end for text in ("nak", "lateral:r=4", "parity", "ack")}) == 1
    assert Stacked.of("multicast").end == Stacked.of("multicast+nak").end
    assert Stacked.of("multicast+nak").end != Stacked.of("nak").end
