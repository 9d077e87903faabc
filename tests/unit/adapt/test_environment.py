"""In what environment a tag lives, from what nodes counted."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from bursts import bursts

from ringcast.adapt.environment import ENDLESS_MBIT, LEAST_DELAY_US, PAUSE, Environment, Surroundings
from ringcast.control.between.choosing import Counted, Heard


def counted(messages: int, skipped: int = 0, gaps: int = 0, transport: str = "nak", **more: int) -> Counted:
    return Counted(7, transport, messages, 100 * messages, more.get("lost", 0), skipped, gaps, transport == "tcp",
                   packets=more.get("packets", 0))  # fmt: skip


def test_nothing_is_known_before_the_second_look() -> None:
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(1_000)])])
    assert around.environment() is None


def test_loss_rate_size_and_the_way_follow_from_what_was_counted_between_looks() -> None:
    around = Surroundings()
    for second in (0, 1, 2):
        around.look(
            float(second),
            [
                Heard("a", [counted(500 + 50 * second, 3 * second, second)], 0.001, 1.25e7),
                Heard("b", [counted(50 * second)], 0.004, 0.0),
            ],
        )
    found = around.environment()
    assert found is not None
    assert (found.receivers, found.rate_hz, found.payload_bytes) == (2, 50.0, 100.0)
    assert found.loss_percent == pytest.approx(100 * 6 / 200)
    assert (found.delay_us, found.bandwidth_mbit) == (2_000.0, 100.0)


def test_a_way_of_nearly_nothing_is_that_of_waking_a_reader() -> None:
    around = Surroundings()
    for second in (0, 1):
        around.look(float(second), [Heard("a", [counted(100 * second)], 2 * 20e-6)])
    found = around.environment()
    assert found is not None
    assert found.delay_us == LEAST_DELAY_US


def test_a_change_of_transport_forgets_nothing() -> None:
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(0)])])
    around.look(1.0, [Heard("a", [counted(100, 10, 10)])])
    around.look(2.0, [Heard("a", [counted(100, 10, 10, transport="parity")])])
    found = around.environment()
    assert found is not None
    assert found.loss_percent == pytest.approx(10.0)


def test_losses_that_nobody_sees_leave_the_loss_as_it_was() -> None:
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(0)])])
    around.look(1.0, [Heard("a", [counted(100, 10, 10)])])
    around.look(2.0, [Heard("a", [counted(100, transport="tcp")])])
    found = around.environment()
    assert found is not None
    assert found.loss_percent == pytest.approx(10.0)
    assert found.bandwidth_mbit == ENDLESS_MBIT


def test_without_a_stack_what_was_lost_in_the_end_is_the_loss() -> None:
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(0, transport="udp")])])
    around.look(1.0, [Heard("a", [counted(90, transport="udp", lost=10)])])
    found = around.environment()
    assert found is not None
    assert found.loss_percent == 10.0
    assert found.burst > 2


def test_old_looks_and_nodes_that_left_do_not_count() -> None:
    around = Surroundings(looks=2)
    heard = [counted(0), counted(100, 50, 50), counted(200, 50, 50), counted(300, 50, 50)]
    for second, one in enumerate(heard):
        around.look(float(second), [Heard("a", [one]), *([Heard("b", [one])] if second < 2 else [])])
    found = around.environment()
    assert found is not None
    assert (found.receivers, found.loss_percent) == (1, 0.0)


def test_another_environment_is_seen_within_two_looks() -> None:
    around = Surroundings()
    messages = skipped = 0
    for second in range(12):
        messages += 100
        skipped += 0 if second < 10 else 5
        around.look(float(second), [Heard("a", [counted(messages, skipped, skipped)])])
    found = around.environment()
    assert found is not None
    assert found.loss_percent == pytest.approx(5.0)


def test_a_few_losses_more_or_less_are_the_same_environment() -> None:
    around = Surroundings()
    messages = skipped = 0
    for second in range(10):
        messages += 100
        skipped += second % 3
        around.look(float(second), [Heard("a", [counted(messages, skipped, skipped)])])
    found = around.environment()
    assert found is not None
    assert found.messages == 900


def test_what_a_sender_sent_again_is_the_loss_that_receivers_of_tcp_do_not_see() -> None:
    around = Surroundings()
    for second in (0, 1, 2):
        sent = Counted(7, "tcp to a", 110 * second, 0, 0, skipped=11 * second, gaps=11 * second)
        around.look(
            float(second), [Heard("a", [counted(100 * second, transport="tcp")], 0.002), Heard("p", [], sent=[sent])]
        )
    found = around.environment()
    assert found is not None
    assert found.loss_percent == pytest.approx(10.0)
    assert (found.receivers, found.rate_hz, found.burst) == (1, 100.0, 1.0), "who sends is no receiver"


def test_a_loss_of_tcp_that_changes_clearly_is_another_environment() -> None:
    around = Surroundings()
    resent = 0
    for second in range(8):
        resent += 100 if second > 5 else 0
        sent = Counted(7, "tcp to a", 1000 * second, 0, 0, skipped=resent, gaps=resent)
        around.look(float(second), [Heard("a", [counted(900 * second, transport="tcp")]), Heard("p", [], sent=[sent])])
    found = around.environment()
    assert found is not None
    assert found.loss_percent == pytest.approx(10.0)


def test_the_same_loss_in_longer_bursts_is_another_environment() -> None:
    around = Surroundings()
    gaps = 0
    for second in range(8):
        gaps += 50 if second < 6 else 25
        around.look(float(second), [Heard("a", [counted(950 * second, 50 * second, gaps)])])
    found = around.environment()
    assert found is not None
    assert found.messages < 3 * 1_000, "what was before is forgotten"
    assert 1.5 < found.burst < 2.1


def test_other_runs_by_another_transport_are_the_same_environment() -> None:
    around = Surroundings()
    plain, coded = (bursts(0.05, 4.0, packets, 8_000) for packets in (1, 4))
    around.look(0.0, [Heard("a", [counted(0)])])
    for at, (name, (skipped, gaps, heard)) in enumerate([("multicast", plain), ("parity", coded)], 1):
        told = counted(8_000 - skipped, skipped, gaps, name, lost=skipped, packets=heard)
        around.look(float(at), [Heard("a", [told])])
    found = around.environment()
    assert found is not None
    assert found.messages == 16_000


def test_what_the_stream_cost_is_that_of_the_last_look() -> None:
    around = Surroundings()
    for second, (came, lost, delay_ns) in enumerate([(0, 0, 0), (100, 0, 10**9), (190, 10, 10**9 + 18 * 10**7)]):
        told = Counted(7, "nak", came, 0, lost, delay_ns=delay_ns)
        around.look(float(second), [Heard("a", [told]), Heard("b", [told])])
    assert around.cost() == (180, 20, 36 * 10**7)
    assert (around.cost().delivered, around.cost().latency_ms) == (90.0, 2.0)
    assert Surroundings().cost().latency_ms == 0.0


def test_what_carries_the_tag_is_known_beside_what_was_chosen() -> None:
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(1)]), Heard("b", [counted(1, transport="tcp")])])
    assert around.carried_by == {"nak", "tcp"}
    around.look(1.0, [Heard("a", [counted(2, transport="tcp")]), Heard("c", [])])
    assert around.carried_by == {"tcp"}


def lived(*looks: list[Heard]) -> Surroundings:
    around = Surroundings()
    for second, heard in enumerate(looks):
        around.look(float(second), heard)
    return around


def test_the_thinnest_line_of_senders_and_receivers_counts_and_a_sender_is_no_receiver() -> None:
    def found(line: float, leaves: float, bandwidth: float) -> tuple[int, float]:
        looks = [
            [Heard("home", [], line=line, leaves=leaves), Heard("a", [counted(100 * n)], 0.0, bandwidth),
             Heard("b", [counted(100 * n)], 0.0, 1e9)] for n in (0, 1)
        ]  # fmt: skip
        around = lived(*looks).environment()
        assert around is not None
        return around.receivers, around.bandwidth_mbit

    own = 2 * 100 * (100 + 60)  # to each receiver by itself
    assert found(250_000.0, own, 1e9) == (2, pytest.approx(2.0))
    assert found(250_000.0, own + 50_000.0, 1e9) == (2, pytest.approx(1.6)), "less what others send by it"
    assert found(250_000.0, own, 125_000.0) == (2, pytest.approx(1.0)), "a receiver's is thinner"
    assert found(0.0, 0.0, 1e9) == (2, pytest.approx(8_000.0)), "an older daemon tells of none"


def test_repairs_are_the_tags_own_and_not_what_others_send() -> None:
    looks = [
        [Heard("home", [], line=250_000.0, leaves=4 * 100 * 160.0),
         Heard("a", [counted(100 * n, transport="multicast+parity", packets=400 * n)])] for n in (0, 1)
    ]  # fmt: skip
    assert lived(*looks).line() == pytest.approx(250_000.0)


def test_of_a_line_nothing_is_told_before_something_came_and_when_nobody_tells_of_it_any_more() -> None:
    home, came = Heard("home", [], line=250_000.0), [Heard("a", [counted(100 * n)]) for n in (0, 1, 2)]
    around = lived([home, came[0]])
    assert around.line() == 0.0
    around.look(1.0, [home, came[1]])
    assert around.line() == 250_000.0
    around.look(2.0, [came[2]])
    assert around.line() == 0.0


def flowing(rates: list[int], transports: list[str] | None = None) -> Surroundings:
    """A look each second, between which so many messages came."""
    names = transports or ["nak"] * (len(rates) + 1)
    sums = list(itertools.accumulate([0, *rates]))
    return lived(*([Heard("a", [counted(came, transport=name)])] for came, name in zip(sums, names, strict=True)))


@pytest.mark.parametrize("partial", [0, 4, 50, 99])
def test_a_stream_that_stops_has_the_rate_that_it_had(partial: int) -> None:
    for pause in (0, 1, PAUSE, PAUSE + 1, 100):
        around = flowing([100] * 10 + [partial] + [0] * pause)
        found = around.environment()
        assert found is not None
        assert found.rate_hz == 100.0
        assert around.paused == (pause + (partial == 0) > PAUSE)
        assert around.cost().messages == (partial if not pause else 0), "nothing is told twice"


def test_a_stream_that_goes_on_after_a_pause_has_not_become_slow() -> None:
    for pause, partial in itertools.product((1, 2, PAUSE, PAUSE + 1, 60), (3, 50, 100)):
        around = flowing([100] * 20 + [30] + [0] * pause + [partial])
        found = around.environment()
        assert found is not None
        assert found.rate_hz == 100.0
        assert not around.paused


@pytest.mark.parametrize(("before", "after"), [(60, 50), (10, 1), (1, 90)])
def test_a_stream_that_pauses_between_the_middles_of_two_looks_has_not_become_slow(before: int, after: int) -> None:
    found = flowing([100] * 6 + [before, after]).environment()
    assert found is not None
    assert found.rate_hz == 100.0


def test_of_a_stream_with_few_messages_all_count() -> None:
    found = flowing([4, 3] * 8).environment()
    assert found is not None
    assert found.rate_hz == 3.5


@pytest.mark.parametrize("slow", [[10, 10, 10], [10] * 10, [0, 1] * 3, [0, 0, 0, 1] * 3])
def test_a_stream_that_becomes_slow_is_slow(slow: list[int]) -> None:
    found = flowing([100] * 10 + slow).environment()
    assert found is not None
    assert found.rate_hz <= 10.0


def test_a_stream_that_becomes_faster_is_fast_at_once() -> None:
    found = flowing([100] * 10 + [200]).environment()
    assert found is not None
    assert found.rate_hz == 200.0


def test_a_channel_with_other_parameters_counts_on_and_one_of_another_kind_from_nothing() -> None:
    tuned = flowing([100, 100, 100], ["multicast+parity:r=4,c=3"] * 3 + ["multicast+parity:r=4,c=2,flush=1s"])
    found = tuned.environment()
    assert found is not None
    assert found.rate_hz == 100.0, "its 300 messages did not come in the last second"
    around = Surroundings()
    around.look(0.0, [Heard("a", [counted(0, transport="nak")])])
    around.look(1.0, [Heard("a", [counted(100, transport="nak")])])
    around.look(2.0, [Heard("a", [counted(90, transport="multicast")])])
    other = around.environment()
    assert other is not None
    assert other.rate_hz == 95.0


def test_models_are_told_of_a_line_that_is_as_fast_as_messages_come() -> None:
    """A token bucket limits what is sent in the long run, and lets a message pass at once."""
    shaped = Environment(
        receivers=3, loss_percent=2.0, burst=1.0, rate_hz=100.0, payload_bytes=190.0, delay_us=100.0, bandwidth_mbit=1.0
    )  # fmt: skip
    assert shaped.numbers()["bandwidth_mbit"] == 20.0
    assert "1 Mbit/s" in str(shaped)
    wire = msgspec.structs.replace(shaped, delay_us=2_100.0)
    assert wire.numbers()["bandwidth_mbit"] == 1.0, "there a message takes as long as it is long"
    assert msgspec.structs.replace(shaped, bandwidth_mbit=1e4).numbers()["bandwidth_mbit"] == 1e4


def test_while_a_senders_line_is_busy_the_way_is_no_longer_than_it_was() -> None:
    def heard(n: int, leaves: float, round_trip_s: float) -> list[Heard]:
        return [Heard("home", [], line=125_000.0, leaves=leaves), Heard("a", [counted(100 * n)], round_trip_s)]

    around = lived(heard(0, 26_000.0, 0.0002), heard(1, 125_000.0, 0.4))
    found = around.environment()
    assert found is not None
    assert found.delay_us == pytest.approx(100.0), "messages wait in the queue"
    for second in (2, 12, 13):
        around.look(float(second), heard(second, 26_000.0, 0.4))
        then = around.environment()
        assert then is not None
        assert then.delay_us == pytest.approx(200_000.0 if second == 13 else 100.0), "of a queue that may just be empty"
    around.line_is(heard(0, 125_000.0, 0.0)[0])
    around.look(14.0, heard(14, 26_000.0, 0.8))
    between = around.environment()
    assert between is not None
    assert between.delay_us == pytest.approx(200_000.0), "it was full between two looks"
    around.look(15.0, heard(15, 125_000.0, 0.001))
    shorter = around.environment()
    assert shorter is not None
    assert shorter.delay_us == pytest.approx(500.0), "it may be shorter"


def test_a_round_trip_that_is_not_known_is_what_it_was_and_gives_way_to_one_that_is() -> None:
    def delay_us(*told: tuple[float, float]) -> float:
        found = lived(
            *(
                [Heard("home", [], line=125_000.0, leaves=leaves), Heard("a", [counted(100 * n)], round_trip_s)]
                for n, (leaves, round_trip_s) in enumerate(told)
            )
        ).environment()
        assert found is not None
        return found.delay_us

    busy, free = 125_000.0, 1_000.0
    assert delay_us((busy, 0.0), (busy, 0.02), (busy, 0.4)) == pytest.approx(10_000.0)
    assert delay_us((free, 0.02), (free, 0.0)) == pytest.approx(10_000.0)
    assert delay_us((free, 0.02), (busy, 0.0)) == pytest.approx(10_000.0)


def test_a_node_that_misses_a_look_still_receives() -> None:
    around = Surroundings()
    sender = Heard("home", [], line=125_000.0, leaves=40_000.0)
    for n in range(3):
        around.look(float(n), [sender, Heard("a", [counted(100 * n)], 0.02), Heard("b", [counted(100 * n)], 0.04)])
    before = around.environment()
    assert before is not None
    around.look(3.0, [Heard("a", [counted(300)], 0.02)], silent={"b", "home"})
    missed = around.environment()
    assert missed is not None
    assert (missed.receivers, missed.delay_us, missed.rate_hz) == (2, before.delay_us, before.rate_hz)
    assert missed.bandwidth_mbit == pytest.approx(before.bandwidth_mbit)
    assert around.cost().messages == 100, "of those who answered"
    around.look(4.0, [sender, Heard("a", [counted(400)], 0.02), Heard("b", [counted(400)], 0.04)])
    again = around.environment()
    assert again is not None
    assert (again.receivers, again.rate_hz, around.cost().messages) == (2, 100.0, 300)
    around.look(5.0, [sender, Heard("a", [counted(500)], 0.02)])
    left = around.environment()
    assert left is not None
    assert left.receivers == 1, "it answered, and receives nothing"


def test_a_stream_that_comes_to_one_node_by_two_transports_has_one_rate() -> None:
    def both(n: int) -> list[Heard]:
        return [Heard("a", [counted(100 * n), counted(95 * n, 5 * n, 5 * n, "multicast", lost=5 * n)])]

    found = lived(*map(both, range(4))).environment()
    assert found is not None
    assert (found.rate_hz, found.receivers) == (100.0, 1)


def test_a_stream_that_changes_its_transport_during_a_look_has_the_rate_of_both_together() -> None:
    around = lived(*([Heard("a", [counted(100 * n)])] for n in range(3)))
    around.look(3.0, [Heard("a", [counted(260), counted(40, transport="multicast")])])
    around.look(4.0, [Heard("a", [counted(140, transport="multicast")])])
    found = around.environment()
    assert found is not None
    assert found.rate_hz == 100.0
