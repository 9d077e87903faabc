"""Which transport carries a tag, and when that changes."""

from __future__ import annotations

import msgspec
import pytest
from choosers import fits, model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.adapt import Chooser
from ringcast.adapt.deciding import LONGEST_RELIEF_S, REST_S, Deciding, Ranking, ranked
from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import Candidate, bytes_sent, expected_loss
from ringcast.adapt.names import carried
from ringcast.adapt.wanting import Wish
from ringcast.daemon.choosing.wishes import serves

CALM = Environment(
    receivers=3, loss_percent=1.0, burst=1.0, rate_hz=100.0, payload_bytes=12.0, delay_us=150.0, bandwidth_mbit=100.0,
    messages=1_000,
)  # fmt: skip


def around(**numbers: float) -> Environment:
    return msgspec.structs.replace(CALM, **numbers)


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


def test_a_line_that_becomes_too_thin_is_a_reason_to_change_at_once() -> None:
    known, deciding = model(["parity:r=4,c=3", "nak"], [0.0, 1.0]), Deciding()
    wide, thin = (around(payload_bytes=200.0, bandwidth_mbit=line) for line in (100.0, 1.0))
    first = deciding.decide(0.0, "", wide, ranked(wide, Wish("relate2"), known, serves))
    assert (first.transport, first.change) == ("multicast+parity:r=4,c=3", True)
    then = deciding.decide(1.0, first.transport, thin, ranked(thin, Wish("relate2"), known, serves, first.transport))
    assert (then.transport, then.change) == ("multicast+nak", True)
    assert "would fill the line" in then.why


def test_where_the_line_is_the_reason_other_parameters_come_first_and_the_best_in_the_next_look() -> None:
    known = model(["parity:r=4,c=3", "nak", "parity:r=4,c=2,flush=1s"], [0.0, 1.0, 2.0])
    wide, thin = (around(payload_bytes=200.0, bandwidth_mbit=line) for line in (100.0, 1.0))
    deciding, current, seen = Deciding(), "", []
    for second, environment in enumerate([wide, thin, thin, thin]):
        decision = deciding.decide(
            float(second), current, environment, ranked(environment, Wish("relate2"), known, serves, current)
        )
        current = decision.transport
        seen.append((current, decision.change))
    assert seen == [
        ("multicast+parity:r=4,c=3", True), ("multicast+parity:r=4,c=2,flush=1s", True), ("multicast+nak", True),
        ("multicast+nak", False),
    ]  # fmt: skip


def test_what_was_taken_in_haste_is_replaced_by_whatever_is_best_then() -> None:
    """Even if that is another one than what was best in the haste, but not by what filled the line, although the line
    seems to have room for it."""
    labels = ["parity:r=4,c=3", "nak", "parity:r=4,c=2,flush=1s", "multicast"]
    before, after = (model(labels, costs) for costs in ([0.0, 1.0, 2.0, 1.5], [0.0, 1.5, 2.0, 1.0]))
    wide, thin = (around(payload_bytes=200.0, bandwidth_mbit=line) for line in (100.0, 1.0))
    deciding, current, seen = Deciding(), "", []
    for environment, known in ((wide, before), (thin, before), (wide, after)):
        ranking = ranked(environment, Wish("relate2"), known, serves, current)
        current = deciding.decide(float(len(seen)), current, environment, ranking).transport
        seen.append((current, deciding.relieved))
    assert seen == [
        ("multicast+parity:r=4,c=3", False), ("multicast+parity:r=4,c=2,flush=1s", True), ("multicast", False),
    ]  # fmt: skip


def test_another_channel_waits_until_the_queue_is_empty_but_not_for_ever() -> None:
    known = model(["parity:r=4,c=3", "nak", "parity:r=4,c=2,flush=1s"], [0.0, 1.0, 2.0])
    wide, thin = (around(payload_bytes=200.0, bandwidth_mbit=line) for line in (100.0, 1.0))
    deciding, current = Deciding(), ""
    for second, environment in enumerate((wide, thin)):
        assert not deciding.waits(float(second), True), "only what was taken in haste waits"
        ranking = ranked(environment, Wish("relate2"), known, serves, current)
        current = deciding.decide(float(second), current, environment, ranking).transport
    assert deciding.waits(1.5, True)
    assert not deciding.waits(1.5, False)
    assert not deciding.waits(1.0 + LONGEST_RELIEF_S, True)


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


def ranking(**scores: float) -> Ranking:
    return Ranking.of(
        [Candidate(name, score) for name, score in sorted(scores.items(), key=lambda one: one[1])], "a test"
    )


def test_the_first_choice_is_made_at_once_and_later_ones_only_when_they_last() -> None:
    deciding = Deciding(settled=3, rest_s=5.0)
    first = deciding.decide(0.0, "", CALM, ranking(udp=1.0, nak=2.0))
    assert first.change
    assert first.transport == "udp"
    now = ranking(nak=1.0, udp=2.0)
    assert [deciding.decide(10.0 + second, "udp", CALM, now).change for second in range(3)] == [False, False, True]


def test_a_little_better_is_not_worth_a_change() -> None:
    deciding = Deciding(settled=1, rest_s=0.0)
    coarse = ranking(nak=0.95, udp=1.0)
    assert not deciding.decide(0.0, "udp", CALM, coarse).change
    assert deciding.decide(0.0, "udp", CALM, coarse._replace(margin=0.03)).change


def test_what_serves_no_longer_is_left_at_once() -> None:
    deciding = Deciding()
    deciding.decide(0.0, "", CALM, ranking(udp=1.0))
    assert deciding.decide(0.1, "udp", CALM, ranking(nak=1.0)).change


def test_few_messages_say_nothing() -> None:
    deciding = Deciding(settled=1, rest_s=0.0)
    assert not deciding.decide(0.0, "udp", around(messages=3), ranking(nak=1.0, udp=9.0)).change


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(min_size=75, max_size=75))
def test_whatever_the_noise_changes_become_rare(noise: bytes) -> None:
    deciding, current, changes = Deciding(settled=1), "udp", 0
    for second in range(8 * len(noise)):
        nak = noise[second // 8] >> second % 8 & 1
        found = deciding.decide(
            float(second), current, CALM, ranking(nak=1.0, udp=9.0) if nak else ranking(nak=9.0, udp=1.0)
        )
        changes += found.change
        current = found.transport
    # Rests of 5, 10, 20, ... seconds: within 600 s there is room for seven.
    assert changes <= 8
    assert REST_S == 5.0


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


def test_the_reason_of_a_decision_names_what_was_compared() -> None:
    deciding = Deciding(settled=1, rest_s=0.0)
    assert deciding.decide(0.0, "", CALM, ranking(udp=1.0)).why == f"a test: best for {CALM}"
    found = deciding.decide(1.0, "udp", CALM, ranking(nak=1.0, udp=2.0)._replace(by="{by} a test"))
    assert found.why == f"{{by}} a test: 1 against 2 of udp, for {CALM}"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(min_size=75, max_size=75))
def test_whatever_a_line_does_changes_become_rare(noise: bytes) -> None:
    wide = Ranking(["kind:best", "kind:tuned", "other"], [1.0, 2.0, 1.5], "a test")
    thin = Ranking(["kind:tuned", "other"], [2.0, 1.5], "a test", thin=True)
    deciding, current, changes = Deciding(settled=1), "", 0
    for second in range(8 * len(noise)):
        found = deciding.decide(float(second), current, CALM, wide if noise[second // 8] >> second % 8 & 1 else thin)
        changes += found.change
        current = found.transport
    assert changes <= 12, "three to leave what fills the line and to come back, and each time the rest is longer"


def test_what_carries_it_since_a_moment_ago_may_be_the_best() -> None:
    wide = Ranking(["kind:best", "kind:tuned", "other"], [1.0, 1.5, 2.0], "a test")
    thin = Ranking(["kind:tuned", "other"], [1.5, 2.0], "a test", thin=True)
    deciding, current, seen = Deciding(settled=1, rest_s=0.0), "", []
    for second, now in enumerate([thin, wide, thin, thin, thin]):
        current = deciding.decide(float(second), current, CALM, now).transport
        seen.append(current.removeprefix("kind:"))
    assert seen == ["tuned", "best", "tuned", "tuned", "tuned"]


def test_what_was_not_measured_again_does_not_look_better_once_more() -> None:
    deciding = Deciding(settled=2, rest_s=0.0)
    deciding.decide(0.0, "", CALM, ranking(udp=1.0))
    better = ranking(nak=1.0, udp=2.0)
    assert not deciding.decide(1.0, "udp", CALM, better).change
    assert not any(deciding.decide(1.1, "udp", CALM, better, measured=False).change for _ in range(5))
    assert deciding.decide(2.0, "udp", CALM, better).change
    assert deciding.decide(2.1, "nak", CALM, ranking(udp=1.0), measured=False).change, "it serves no longer"


def test_on_a_thin_line_a_change_must_be_worth_what_messages_wait_for_it() -> None:
    line = {
        mbit: around(receivers=8, loss_percent=5.0, payload_bytes=200.0, bandwidth_mbit=mbit) for mbit in (1.0, 100.0)
    }
    for mbit, best, changes in (
        (100.0, "multicast+lateral:r=4,c=5", True), (1.0, "multicast+lateral:r=4,c=5", False),
        (1.0, "multicast+nak:tries=8", True),
    ):  # fmt: skip
        deciding = Deciding(settled=1, rest_s=0.0)
        found = deciding.decide(0.0, "multicast+nak:tries=16", line[mbit], Ranking(
            [best, "multicast+nak:tries=16"], [1.0, 1.2], "a test"))  # fmt: skip
        assert found.change is changes, (mbit, best)
        assert changes or "what a change costs on a line of 1 Mbit/s" in found.why
    much = Ranking(["multicast+lateral:r=4,c=5", "multicast"], [1.0, 9.0], "a test")
    slow = msgspec.structs.replace(line[1.0], delay_us=200_000.0)
    assert Deciding(settled=1, rest_s=0.0).decide(0.0, "multicast", slow, much).change, (
        "a way so long, and nine times it"
    )
