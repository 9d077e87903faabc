"""What may carry a tag, and how good each would be."""

from __future__ import annotations

import msgspec
import pytest
from choosers import CALM, around, fits, model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.adapt import Chooser
from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import bytes_sent, expected_loss
from ringcast.adapt.names import carried
from ringcast.adapt.ranking import ranked
from ringcast.adapt.wanting import Wish
from ringcast.daemon.choosing.wishes import serves


def test_the_model_ranks_what_serves() -> None:
    known = model(["udp", "parity:r=4,c=1", "nak"], [0.0, 1.0, 2.0])
    assert [one.transport for one in ranked(CALM, Wish("relate2"), known, serves).candidates] == [
        "udp", "multicast+parity:r=4,c=1", "multicast+nak",
    ]  # fmt: skip
    reliable = ranked(CALM, Wish("relate2", reliable=True), known, serves)
    assert [one.transport for one in reliable.candidates] == ["multicast+nak"]


def test_what_would_fill_the_line_is_no_candidate() -> None:
    known = model(["parity:r=4,c=3", "nak", "udp"], [0.0, 1.0, 2.0])
    wide = around(payload_bytes=200.0, bandwidth_mbit=2.0)
    found = ranked(wide, Wish("relate2"), known, serves)
    assert found.candidates[0].transport == "multicast+parity:r=4,c=3"
    assert not found.thin
    thin = around(payload_bytes=200.0, bandwidth_mbit=1.0)
    found = ranked(thin, Wish("relate2"), known, serves)
    assert [one.transport for one in found.candidates] == ["multicast+nak", "udp"], "three repairs for each do not fit"
    assert found.thin
    assert "without 1 that would fill the line" in found.by
    thinner = around(payload_bytes=200.0, bandwidth_mbit=0.32)
    assert [one.transport for one in ranked(thinner, Wish("relate2"), known, serves).candidates] == ["multicast+nak"]
    none = around(payload_bytes=200.0, bandwidth_mbit=0.1)
    assert [one.transport for one in ranked(none, Wish("relate2"), known, serves).candidates] == ["multicast+nak"], (
        "what sends the least, where nothing fits"
    )


def test_what_carries_the_stream_may_take_more_of_the_line_than_what_is_to_replace_it() -> None:
    known = model(["parity:r=4,c=3", "nak"], [0.0, 1.0])
    between = around(payload_bytes=200.0, bandwidth_mbit=1.25)
    carrying = "multicast+parity:r=4,c=3"
    for current, best in ((carrying, carrying), ("multicast+nak", "multicast+nak"), ("", "multicast+nak")):
        assert ranked(between, Wish("relate2"), known, serves, current).candidates[0].transport == best
    full = around(payload_bytes=200.0, bandwidth_mbit=1.0)
    assert ranked(full, Wish("relate2"), known, serves, carrying).candidates[0].transport == "multicast+nak"


def test_a_promise_comes_before_the_line() -> None:
    known = model(["parity:r=4,c=3", "multicast"], [0.0, 1.0])
    thin = around(payload_bytes=200.0, bandwidth_mbit=1.0, loss_percent=5.0)
    accepted = Wish("relate2", loss=0.02, ordered=False)
    assert [one.transport for one in ranked(thin, accepted, known, serves).candidates] == ["multicast+parity:r=4,c=3"]


@given(
    receivers=st.integers(1, 25), loss=st.floats(0, 10), rate=st.floats(5.1, 900), size=st.floats(12, 1_200),
    line=st.floats(0.05, 50),
)  # fmt: skip
def test_what_a_decision_computes_of_lines_is_what_is_told_of_them(
    receivers: int, loss: float, rate: float, size: float, line: float
) -> None:
    labels = ["parity:r=4,c=3", "parity+nak:r=8,c=2,flush=1s", "lateral:r=4,c=5", "nak", "multicast", "udp", "tcp"]
    around_it = around(
        receivers=receivers, loss_percent=loss, rate_hz=float(int(rate)), payload_bytes=size, bandwidth_mbit=line
    )
    wish = Wish("relate2", ordered=False)
    found = ranked(around_it, wish, model(labels, [0.0] * len(labels)), lambda transport, wish: True)
    names = {one.transport for one in found.candidates}
    fitting = {name for name in map(carried, labels) if fits(name, around_it)}
    least = min(map(carried, labels), key=lambda name: bytes_sent(name, around_it))
    assert names == (fitting or {least})
    assert found.thin == (len(names) < len(labels))


def test_the_rule_leaves_out_what_would_fill_the_line_too() -> None:
    far = around(payload_bytes=200.0, delay_us=500_000.0, loss_percent=8.0)
    wide, thin = (
        ranked(msgspec.structs.replace(far, bandwidth_mbit=line), Wish("delivered"), None, serves)
        for line in (100.0, 0.5)
    )
    assert "tcp" in {one.transport for one in wide.candidates}
    assert {one.transport for one in thin.candidates} < {one.transport for one in wide.candidates}
    assert "tcp" not in {one.transport for one in thin.candidates}
    assert "would fill the line" in thin.by


def test_of_equals_what_sends_less_is_better() -> None:
    labels = ["parity:r=4,c=3", "nak", "parity:r=4,c=2,flush=1s"]
    found = ranked(around(), Wish("relate2"), model(labels, [0.0, 0.002, 0.001]), lambda transport, wish: True)
    assert [one.transport for one in found.candidates] == [
        "multicast+nak", "multicast+parity:r=4,c=2,flush=1s", "multicast+parity:r=4,c=3",
    ]  # fmt: skip
    clearly = ranked(around(), Wish("relate2"), model(labels, [0.0, 0.02, 0.03]), lambda transport, wish: True)
    assert clearly.candidates[0].transport == "multicast+parity:r=4,c=3"


def test_what_would_lose_more_than_is_accepted_is_no_candidate() -> None:
    known = model(["udp", "nak"], [0.0, 1.0])
    found = ranked(around(loss_percent=3.0), Wish("relate2", loss=0.02), known, serves)
    assert [one.transport for one in found.candidates] == ["multicast+nak"]


@pytest.mark.parametrize("known", [None, model(["udp"], [0.0])])
def test_beyond_what_was_learned_and_without_a_model_a_rule_decides_and_says_so(known: Chooser | None) -> None:
    found = ranked(around(loss_percent=30.0), Wish("relate2"), known, serves)
    assert found.candidates[0].transport == "multicast+nak"
    assert "rule" in found.by


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.builds(
        around, receivers=st.integers(1, 50), loss_percent=st.floats(0, 100), burst=st.floats(1, 10),
        rate_hz=st.floats(0.1, 1e5), delay_us=st.floats(0, 1e6),
    ),
    st.sampled_from(["relate2", "p99", "bandwidth", "delivered", "deadline"]),
    st.booleans(),
    st.floats(0, 1),
)  # fmt: skip
def test_a_rule_always_finds_something_that_keeps_the_promise(
    environment: Environment, metric: str, reliable: bool, loss: float
) -> None:
    wish = Wish(metric, loss, reliable)
    found = ranked(environment, wish, None, serves).candidates
    assert found
    for one in found:
        assert serves(one.transport, wish)
        assert expected_loss(one.transport, environment) <= loss


def test_what_a_name_says_and_whom_it_serves_is_looked_up_once_for_each_model_and_promise() -> None:
    asked = []

    def slowly(transport: str, wish: Wish) -> bool:
        asked.append((transport, wish.reliable))
        return serves(transport, wish)

    known = model(["udp", "nak"], [0.0, 1.0])
    for loss in (0.0, 1.0, 5.0):
        for reliable, names in ((False, ["udp", "multicast+nak"]), (True, ["multicast+nak"])):
            found = ranked(around(loss_percent=loss), Wish("relate2", reliable=reliable), known, slowly)
            assert [one.transport for one in found.candidates] == names
    assert sorted(asked) == [(name, reliable) for name in ("multicast+nak", "udp") for reliable in (False, True)]
