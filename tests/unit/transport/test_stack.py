from __future__ import annotations

import pytest

from ringcast.errors import BadTransport
from ringcast.transport.stack import Loss, parse


def test_names_and_settings() -> None:
    stack = parse("lateral:r=4,c=3,stagger=8,flush=2.5ms")
    assert stack.stages == ("lateral",)
    assert stack.tuning == {"r": 4, "c": 3, "stagger": 8, "flush_ns": 2_500_000}
    assert parse("multicast").stages == ()


@pytest.mark.parametrize(
    ("text", "reliable", "ordered"),
    [
        ("multicast", False, False),
        ("ordering", False, True),
        ("lateral", False, False),
        ("parity+ordering", False, True),
        ("nak", True, True),
        ("ack", True, True),
        ("lateral+nak", True, True),
    ],
)
def test_promises(text: str, reliable: bool, ordered: bool) -> None:
    promises = parse(text).promises
    assert (promises.reliable, promises.ordered) == (reliable, ordered)


def test_a_second_phase_waits_for_the_first() -> None:
    assert parse("lateral+nak:r=4,stagger=2").tuning["grace_gaps"] == 16
    assert "grace_gaps" not in parse("nak:r=4").tuning


def test_loss_on_purpose() -> None:
    stack = parse("lossy+nak:loss=3%,burst=4,seed=7")
    assert stack.stages == ("ordering", "nak")
    assert stack.loss == Loss(0.03, 4.0, 7)
    assert parse("lossy:loss=1%").stages == ()
    rate, enter, leave = Loss(0.03, 4.0).native()
    assert rate == 0
    assert enter / (enter + leave) == pytest.approx(0.03)
    assert leave == 0.25


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no stage ''"),
        ("hope", "only ack, lateral"),
        ("nak:", "nothing follows"),
        ("nak:tries", "key=value"),
        ("nak:colour=red", "there are r, c"),
        ("nak:tries=some", "whole number"),
        ("nak:heartbeat=5", "5ms"),
        ("nak:tries=1,tries=2", "twice"),
        ("nak+nak", "twice"),
        ("multicast+nak", "no stage 'multicast'"),
        ("lateral:r=65", "out of range: r"),
        ("lateral:c=0", "out of range: c"),
        ("lossy+nak", "loss=3%"),
        ("lossy:loss=3", "share"),
        ("lossy:loss=100%", "share"),
        ("nak:loss=3%", "no setting"),
    ],
)
def test_what_cannot_be_read(text: str, reason: str) -> None:
    with pytest.raises(BadTransport, match=reason) as caught:
        parse(text)
    assert caught.value.text == text


def test_retuned_changes_only_what_is_named() -> None:
    assert parse("lateral:r=4").retuned(c=5).tuning == {"r": 4, "c": 5}
