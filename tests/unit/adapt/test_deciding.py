"""Whether a better transport is worth a change."""

from __future__ import annotations

import msgspec
from choosers import CALM, around, model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.adapt.deciding import LONGEST_RELIEF_S, REST_S, Deciding
from ringcast.adapt.foretelling import Candidate
from ringcast.adapt.ranking import Ranking, ranked
from ringcast.adapt.wanting import Wish
from ringcast.daemon.choosing.wishes import serves


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


def test_what_may_not_be_changed_to_yet_is_no_reason_to_look_more_often() -> None:
    thin = around(receivers=8, loss_percent=5.0, payload_bytes=200.0, bandwidth_mbit=1.0)
    dear = Ranking(["multicast+lateral:r=4,c=5", "multicast+nak"], [1.0, 1.2], "a test")
    deciding, wavered = Deciding(rest_s=0.0), []
    for second in range(3):
        assert not deciding.decide(float(second), "multicast+nak", thin, dear).change
        wavered.append(deciding.wavers)
    assert wavered == [True, False, True], "it has to look better twice, and then costs too much"
    resting, wavered = Deciding(rest_s=60.0), []
    resting.decide(0.0, "", CALM, ranking(nak=1.0))
    for second in range(3):
        assert not resting.decide(float(second), "nak", CALM, ranking(nak=2.0, udp=1.0)).change
        wavered.append(resting.wavers)
    assert wavered == [True, False, False], "the last change was just now"


def test_a_stream_that_stops_ends_the_haste() -> None:
    known = model(["parity:r=4,c=3", "nak", "parity:r=4,c=2,flush=1s"], [0.0, 1.0, 2.0])
    thin = around(payload_bytes=200.0, bandwidth_mbit=1.0)
    current, deciding = "multicast+parity:r=4,c=3", Deciding()
    deciding.decide(0.0, current, thin, ranked(thin, Wish("relate2"), known, serves, current))
    assert deciding.relieved
    deciding.pause()
    assert not deciding.relieved
    assert not deciding.wavers
