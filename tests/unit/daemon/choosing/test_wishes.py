"""Who leaves a tag's transport to its keeper, and what is promised to them meanwhile."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from ringcast.adapt.environment import Cost, Environment
from ringcast.adapt.foretelling import Candidate, cost
from ringcast.adapt.ranking import Ranking
from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import Counted, Heard, Lived
from ringcast.control.limits import MAX_CHOICES_PER_TAG
from ringcast.daemon.choosing.telling import asker, explained, lived
from ringcast.daemon.choosing.wishes import Asked, limited, of_nodes, serves, wishes_of
from ringcast.daemon.rings.demand import SubscribeOptions
from ringcast.daemon.streams.routes import check_options, check_setting, demand
from ringcast.daemon.table.admission import admit
from ringcast.daemon.table.rows import Delta, Entry, SubscriberRow, TagRow
from ringcast.errors import QosMismatch
from ringcast.model.carrier import Automatic, Chosen, automatic, is_automatic
from ringcast.model.identity import SubscriberInfo
from ringcast.model.place import Setting, Wanted
from ringcast.model.tag import TagAttributes

AROUND = Environment(
    receivers=3, loss_percent=5.0, burst=1.0, rate_hz=100.0, payload_bytes=200.0, delay_us=500.0, bandwidth_mbit=100.0,
    messages=300,
)  # fmt: skip


def row(
    transport: str = "", setting: str = "", settings: dict[str, str] | None = None, chosen: dict[str, str] | None = None
) -> TagRow:  # fmt: skip
    """`setting` is for all, `settings` are by receiver."""
    of = {"": setting, **(settings or {})}
    return TagRow(
        name="t", attributes=TagAttributes(transport=transport), primary="a",
        settings={key: Setting(transport=text) for key, text in of.items() if text},
        chosen={key: Chosen(to) for key, to in (chosen or {}).items()},
    )  # fmt: skip


def subscriber(
    number: int, transport: str = "", *, node: str = "b", reliable: bool = False, ordered: bool = True
) -> SubscriberRow:
    """With one of its own that it asked for, left to the mesh or not."""
    info = SubscriberInfo(id=number, node=node, pattern="t", pid=1, user="u", reliable=reliable)
    wanted = Wanted(transport=transport if is_automatic(transport) else "", ordered=ordered)
    return SubscriberRow(info=info, wanted=wanted, transport="" if is_automatic(transport) else transport)


def wishes(row: TagRow, subscribers: list[SubscriberRow]) -> dict[str, Wish]:
    return {key: asked.wish for key, asked in wishes_of(row, subscribers).items()}


def test_nobody_leaves_it_to_the_keeper() -> None:
    assert wishes(row("nak", "tcp"), [subscriber(1)]) == {}


def test_a_tag_an_administrator_or_a_subscriber_may() -> None:
    asked = Wish("p99", 0.02)
    assert wishes(row("auto:p99,loss=2%"), [subscriber(1)]) == {"auto:p99,loss=2%": asked}
    assert wishes(row(setting="auto:p99,loss=2%"), [subscriber(1)]) == {"auto:p99,loss=2%": asked}
    assert wishes(row(), [subscriber(1, "auto:p99,loss=2%"), subscriber(2)]) == {"auto:p99,loss=2%": asked}


def test_those_who_were_promised_something_else_are_chosen_for_apart() -> None:
    found = wishes(row("auto:relate2"), [subscriber(1), subscriber(2, reliable=True), subscriber(3, ordered=False)])
    assert found == {
        "auto:relate2": Wish("relate2"),
        "auto:relate2 reliable": Wish("relate2", reliable=True),
        "auto:relate2 unordered": Wish("relate2", ordered=False),
    }


def test_until_it_is_chosen_and_where_it_does_not_serve_the_default_carries_it() -> None:
    options = SubscribeOptions(transport="auto:relate2")
    assert demand(options, row(), "b").transport == "nak"
    assert demand(options, row(chosen={"auto:relate2": "multicast+nak"}), "b").transport == "multicast+nak"
    reliable = options._replace(reliable=True)
    assert demand(reliable, row(chosen={"auto:relate2": "udp"}), "b").transport == "tcp"
    assert demand(reliable, row(chosen={"auto:relate2 reliable": "udp"}), "b").transport == "tcp"
    assert demand(reliable, row(chosen={"auto:relate2 reliable": "nak"}), "b").transport == "nak"


def test_a_transport_by_name_pins_it() -> None:
    pinned = row(setting="ack", chosen={"auto:relate2": "udp"})
    assert demand(SubscribeOptions(transport="auto:relate2"), pinned, "b").transport == "ack"


def test_what_is_left_to_the_mesh_for_one_receiver_is_chosen_for_that_one_by_what_it_meets() -> None:
    tag = row("auto:relate2", settings={"c": "auto:p99", "d#4": "auto:bandwidth"})
    found = wishes_of(tag, [subscriber(n, node=node) for n, node in enumerate("bcdd", 1)])
    assert found == {
        "auto:relate2": Asked(Wish("relate2"), frozenset("bd")),
        "auto:p99 to c": Asked(Wish("p99"), frozenset("c")),
        "auto:bandwidth to d#4": Asked(Wish("bandwidth"), frozenset("d")),
    }
    carried = row(
        "auto:relate2", settings={"c": "auto:p99"}, chosen={"auto:relate2": "nak", "auto:p99 to c": "multicast+nak"}
    )
    assert demand(SubscribeOptions(), carried, "b", 1).transport == "nak"
    assert demand(SubscribeOptions(), carried, "c", 2).transport == "multicast+nak"


def test_whoever_asked_for_a_transport_by_name_wishes_nothing_unless_an_administrator_does() -> None:
    named = [subscriber(1, "udp", node="b"), subscriber(2, node="c")]
    assert wishes_of(row("auto:relate2"), named)["auto:relate2"].nodes == frozenset("c")
    assert wishes_of(row(setting="auto:relate2"), named)["auto:relate2"].nodes == frozenset("bc")


def test_what_is_pinned_for_some_does_not_count_for_the_others() -> None:
    both = [subscriber(1, node="b"), subscriber(2, node="c")]
    (all_pinned,) = wishes_of(row("auto:relate2", setting="nak"), both).values()
    assert all_pinned == Asked(Wish("relate2"), frozenset("bc"), frozenset({"nak"}))
    (one_pinned,) = wishes_of(row("auto:relate2", settings={"b": "nak"}), both).values()
    assert one_pinned == Asked(Wish("relate2"), frozenset("c"))
    (two_pins,) = wishes_of(row("auto:relate2", settings={"b": "nak", "c": "ack"}), both).values()
    assert two_pins == Asked(Wish("relate2"), frozenset("bc"), frozenset({"ack", "nak"}))
    assert two_pins.pinned == "ack and nak"
    (unkept,) = wishes_of(row("auto:relate2", setting="udp"), [subscriber(1, reliable=True)]).values()
    assert unkept.pinned == "", "udp is not used where nothing may be lost"


def test_however_much_is_pinned_other_nodes_take_the_row() -> None:
    pins = {f"n{n}": "multicast+parity:r=4,c=3,flush=" + str(n + 1).rjust(3, "0") + "ms" for n in range(40)}
    both = [subscriber(n + 1, node=node) for n, node in enumerate(pins)]
    ((key, one),) = wishes_of(row("auto:relate2", settings=pins), both).items()
    assert len(one.pins) == 40
    assert one.pinned == "multicast+parity:r=4,c=3,flush=001ms and 39 more"
    told = msgspec.structs.replace(row("auto:relate2"), chosen={key: Chosen("", pinned=one.pinned)})
    refused: Counter[str] = Counter()
    delta = Delta(node="a", incarnation=1, since=0, through=1, floor=0, entries=[Entry("t", 1, told)])
    assert admit(delta, refused).entries
    assert not refused


def test_of_more_wishes_than_a_row_has_room_for_those_that_were_chosen_for_stay() -> None:
    many = {f"n{n:02}": "auto:p99" for n in range(MAX_CHOICES_PER_TAG + 4)}
    tag = row(settings=many)
    asked = wishes_of(tag, [subscriber(n + 1, node=node) for n, node in enumerate(many)])
    assert len(asked) == MAX_CHOICES_PER_TAG + 4
    first = limited(asked, ())
    assert sorted(first) == sorted(asked)[:MAX_CHOICES_PER_TAG]
    last = max(asked)
    assert last in limited(asked, {last})
    assert limited(first, ()) is first


def test_of_what_nodes_tell_only_what_concerns_these_receivers_counts() -> None:
    to_b, to_c = (Counted(7, f"tcp to {node}", 10, 0, 0) for node in "bc")
    came = Counted(7, "tcp", 10, 100, 0)
    sender, b, c = Heard("a", [], sent=[to_b, to_c], line=1e6), Heard("b", [came]), Heard("c", [came])
    assert of_nodes([sender, b, c], {"b"}) == [
        Heard("a", [], sent=[to_b], line=1e6), Heard("b", [came]), Heard("c", [])
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["auto", "auto:", "auto:speed", "auto:p99,loss=2,loss=x", "auto:p99,patience=3", "auto:p99,loss=120%",
             "auto:deadline=", "auto:deadline=20", "auto:deadline=0ms", "auto:deadline=2h", "auto:p99=20ms"]
)  # fmt: skip
def test_what_cannot_be_asked_for_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(ValueError, match=r"auto:METRIC|loss=NUMBER"):
        automatic(text)
    with pytest.raises(QosMismatch):
        check_options(SubscribeOptions(transport=text), None, "b")
    with pytest.raises(QosMismatch):
        check_setting(None, text, [], 0)


def test_how_much_may_be_missing_is_a_share() -> None:
    assert automatic("auto:relate2") == Automatic("relate2", 1.0)
    assert automatic("auto:p99,loss=2%") == Automatic("p99", 0.02)
    assert automatic("auto:p99,loss=0.5") == Automatic("p99", 0.5)


def test_a_deadline_may_be_said_and_no_model_knows_another_than_that_of_experiments() -> None:
    assert automatic("auto:deadline") == Automatic("deadline", 1.0, 0.1)
    assert automatic("auto:deadline=20ms,loss=2%") == Automatic("deadline", 0.02, 0.02)
    assert automatic("auto:deadline=0.1s").deadline_s == 0.1
    (strict,) = wishes(row("auto:deadline=20ms"), [subscriber(1)]).values()
    assert (strict.deadline_s, strict.learned) == (0.02, "")
    assert Wish("deadline").learned == "late_or_lost_100ms"


def test_a_transport_that_is_not_installed_serves_nobody() -> None:
    assert not serves("pigeons", Wish("relate2"))


def test_what_was_lived_through_is_told_with_what_was_predicted() -> None:
    ranking = Ranking.of([Candidate("nak", 1.0), Candidate("udp", 1.2)], "a test")
    found = lived("cam", "auto:relate2", "udp", AROUND, Cost(95, 5, 95 * 2_000_000), ranking, "nak", 7)
    assert (found.tag, found.transport, found.changed_to, found.taken_ns) == ("cam", "udp", "nak", 7)
    assert (found.receivers, found.loss_percent, found.rate_hz) == (3, 5.0, 100.0)
    assert (found.delivered, found.latency_mean, found.relate2) == (95.0, 2.0, 12.0)
    assert found.predicted == pytest.approx(1.2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Lived) == found


def test_what_is_listed_as_unordered_was_predicted_too() -> None:
    ranking = Ranking.of([Candidate("multicast+nak", 1.0), Candidate("multicast+parity:r=4,c=3", 1.5)], "a test")
    listed = demand(
        SubscribeOptions(transport="multicast+parity:r=4,c=3", ordered=False), row(), "b"
    ).transport  # fmt: skip
    found = lived("cam", "auto:relate2 unordered", listed, AROUND, Cost(95, 5, 0), ranking, "", 7)
    assert found.transport == "multicast+parity+unordered:r=4,c=3"
    assert found.predicted == pytest.approx(1.5)


def test_a_look_is_told_for_whom_the_stream_was_carried_so() -> None:
    keys = ["auto:relate2", "auto:relate2 unordered"]
    chosen = {"auto:relate2": "multicast+nak", "auto:relate2 unordered": "multicast+parity:r=4,c=3"}
    assert asker("multicast+parity+unordered:r=4,c=3", keys, chosen) == "auto:relate2 unordered"
    assert asker("multicast+nak", keys, chosen) == "auto:relate2"
    assert asker("multicast+nak", keys, {**chosen, "auto:relate2": "tcp", keys[1]: "multicast+nak"}) == keys[1]
    assert asker("ack", keys, chosen) == "auto:relate2", "pinned: whoever is promised as much order"
    assert asker("multicast+unordered", keys, {}) == "auto:relate2 unordered"


def test_a_choice_is_explained_with_candidates_in_times_the_best_and_with_what_is_predicted() -> None:
    ranking = Ranking.of([Candidate("nak", 2.0), Candidate("tcp", 3.0)], "the neural for relate2")
    told = explained("auto:relate2", Chosen("nak", "it was best", 7), Wish("relate2"), AROUND, ranking)
    assert (told.asked, told.transport, told.since_ns, told.why) == ("auto:relate2", "nak", 7, "it was best")
    assert told.candidates == [("nak", 1.0), ("tcp", 1.5)]
    assert "5 % loss" in told.environment
    assert told.by == "the neural for relate2"
    lowest = cost("nak", AROUND, Wish("relate2"))
    assert told.values == pytest.approx([lowest, 1.5 * lowest])
    assert 0.5 < lowest < 2.0
    assert told.unit == "ms"


def test_votes_are_no_costs_so_each_candidate_is_foretold_by_itself() -> None:
    ranking = Ranking.of([Candidate("multicast+nak", 0.1), Candidate("multicast", 0.9)], "the forest", costs=False)
    told = explained("auto:delivered", Chosen("nak"), Wish("delivered"), AROUND, ranking)
    assert told.values == pytest.approx([100.0, 95.0])
    assert told.unit == "%"
    pinned = explained("auto:delivered", Chosen("nak", pinned="ack"), Wish("delivered"), AROUND, ranking)
    assert pinned.pinned == "ack"
    nothing = explained("auto:delivered", Chosen("nak"), Wish("delivered"), AROUND, Ranking.of([], "the rule"))
    assert (nothing.candidates, nothing.values) == ([], [])
