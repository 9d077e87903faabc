"""Who is let in by the deadlines of all, as the tag table has them."""

from __future__ import annotations

import msgspec
import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import AdmissionError, Cost, Costs
from ringcast.admission.verdict import judge
from ringcast.daemon.admitting.admitting import Admitting
from ringcast.daemon.admitting.declared_system import declared_system, transport_of
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import AdmissionRefused, QosMismatch
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Setting, Wanted

COST = Cost(fixed_s=1e-4)
FOUND = Calibration(
    Machine("p", 1, "k", "v"), Costs(publish=COST, send=COST, receive=COST, deliver=COST), 1e-4, "now", True
)
SLOW = Declared(1.0, 1000)


@pytest.fixture
def table():
    made = TagTable("n1", 1)
    for name in ("t", "u"):
        made.open_tag(name, {}, create=True)
    return made


def published(table: TagTable, tag: str, said: Declared | None, number: int = 1) -> None:
    info = PublisherInfo(id=number, node="n1", tag=tag, incarnation=number, pid=1, user="", program="")
    table.put(PublisherRow(info=info, depth=1, capacity_bytes=1, declared=said))


def subscribed(table: TagTable, tag: str, deadline_s: float, number: int = 9) -> None:
    info = SubscriberInfo(id=number, node="n1", pattern=tag, pid=1, user="", reliable=False, program="")
    table.put(SubscriberRow(info=info, deadline_s=deadline_s))


def never() -> Calibration:
    raise AssertionError("nobody declared anything")


def test_who_declares_nothing_is_not_judged(table):
    admitting = Admitting(table, never)
    admitting.publish("t", None)
    admitting.subscribe("t", 0.0, False, Wanted())


def test_a_deadline_that_can_be_kept(table):
    published(table, "t", SLOW)
    Admitting(table, lambda: FOUND).subscribe("t", 0.1, False, Wanted())


def test_a_deadline_that_cannot_be_kept_is_refused_with_the_numbers(table):
    published(table, "t", SLOW)
    with pytest.raises(AdmissionRefused, match=r"missed by .*would fit: .*a deadline of") as caught:
        Admitting(table, lambda: FOUND).subscribe("t", 1e-4, False, Wanted())
    assert "publish" in caught.value.reasons[0] or "deliver" in caught.value.reasons[0]


def test_a_publisher_that_would_hurt_another_is_refused(table):
    published(table, "t", Declared(0.1, 1000, 0.001))
    subscribed(table, "t", 0.05)
    admitting = Admitting(table, lambda: FOUND)
    subscribed(table, "u", 0.02, number=8)
    admitting.publish("u", Declared(0.1, 1000, 0.001))
    with pytest.raises(AdmissionRefused, match="t of n1#1 to n1#9") as caught:
        admitting.publish("u", Declared(0.018, 1000, 0.0175))
    assert caught.value.what == "a publisher on 'u'"


def test_what_others_miss_already_is_not_held_against_a_newcomer(table):
    published(table, "t", SLOW)
    subscribed(table, "t", 1e-6)
    Admitting(table, lambda: FOUND).publish("u", SLOW)


def test_a_pattern_is_judged_for_every_tag(table):
    published(table, "u", Declared(0.1, 1000, 0.09), number=2)
    with pytest.raises(AdmissionRefused, match="u of n1#2"):
        Admitting(table, lambda: FOUND).subscribe("*", 0.01, False, Wanted())


def test_a_machine_that_was_not_calibrated_says_how_to(table):
    def missing() -> Calibration:
        raise AdmissionError("costs", "this machine has not been calibrated; run 'ringcast admit --calibrate'")

    with pytest.raises(AdmissionRefused, match="ringcast admit --calibrate"):
        Admitting(table, missing).publish("t", SLOW)


def test_publishers_that_left_do_not_count(table):
    info = PublisherInfo(id=1, node="n1", tag="t", incarnation=1, pid=1, user="", program="")
    table.put(PublisherRow(info=info, depth=1, capacity_bytes=1, declared=SLOW, alive=False))
    assert declared_system(table, FOUND, [], []).streams == ()


def test_more_streams_than_can_be_judged_between_two_requests(table):
    for number in range(1, 34):
        published(table, "t", SLOW, number)
    with pytest.raises(AdmissionRefused, match="at most 32 streams; plan more by 'ringcast admit'"):
        Admitting(table, lambda: FOUND).subscribe("t", 0.5, False, Wanted())


def pulling(table: TagTable, period_s: float, max_age_s: float, number: int = 0) -> SubscriberRow:
    info = SubscriberInfo(id=number, node="n1", pattern="t", pid=1, user="", reliable=False, program="")
    return SubscriberRow(info=info, wanted=Wanted(at="publisher"), deadline_s=max_age_s, pulls_s=period_s)


def test_the_age_of_what_a_pull_client_gets_is_bounded(table):
    published(table, "t", SLOW)
    admitting = Admitting(table, lambda: FOUND)
    admitting.pull(pulling(table, 0.1, 1.5))
    with pytest.raises(
        AdmissionRefused, match=r"pulls every 0.1 s and wants nothing older than 0.9 s.*age 900"
    ) as caught:
        admitting.pull(pulling(table, 0.1, 0.9))  # the newest may be nearly a period old
    assert "t of n1#1 to n1#0" in caught.value.reasons[0]


def test_a_pull_client_that_was_let_in_counts_and_is_nobodys_subscriber(table):
    costly = Calibration(Machine("p", 1, "k", "v"), Costs(publish=COST, pull=Cost(fixed_s=0.05)), 1e-4, "now", True)
    published(table, "t", SLOW)
    admitting = Admitting(table, lambda: costly)
    admitting.pull(pulling(table, 0.1, 2.0))
    table.put(pulling(table, 0.1, 2.0, number=5))
    assert table.subscribers("t") == []
    assert [row.info.id for row in table.pulls("t")] == [5]
    with pytest.raises(AdmissionRefused, match=r"no bound|missed by"):
        admitting.pull(pulling(table, 0.06, 2.0))  # both together are more than the core can do
    table.remove("sub:5")
    admitting.pull(pulling(table, 0.06, 2.0))


CELLS = Calibration(Machine("p", 1, "k", "v"), Costs(deliver=Cost(per_byte_s=1e-6)), 0.0, "now", True)
"""A reader needs a microsecond for each byte."""


def photographed(table: TagTable) -> None:
    """Every tenth of a second 100 by 100 cells of a byte, and what is before them."""
    table.open_tag("camera", {"codec": "numpy", "schema": {"shape": [100, 100]}}, create=True)
    published(table, "camera", Declared(0.1, 10_100))


def test_a_size_is_computed_with_its_own_bytes(table):
    photographed(table)
    admitting = Admitting(table, lambda: CELLS)
    with pytest.raises(AdmissionRefused):
        admitting.subscribe("camera", 0.005, False, Wanted())
    with pytest.raises(AdmissionRefused):
        admitting.subscribe("camera", 0.005, False, Wanted(size=(90, 90)))
    admitting.subscribe("camera", 0.005, False, Wanted(size=(50, 50)))


def test_of_a_range_of_sizes_the_best_that_fits(table):
    photographed(table)
    admitting = Admitting(table, lambda: CELLS)
    wanted = Wanted(size=(100, 100), range_size=((20, 20), (100, 100)))
    assert admitting.allowed_for("camera", 0.05, False, wanted).size is None
    admitting.subscribe("camera", 0.005, False, wanted)
    width, height = admitting.allowed_for("camera", 0.005, False, wanted).size
    assert 20 < width < 70
    assert height == width
    with pytest.raises(AdmissionRefused):
        admitting.subscribe("camera", 0.0001, False, wanted)


def test_where_the_schema_says_nothing_a_size_has_all_the_bytes(table):
    table.open_tag("camera", {"codec": "numpy"}, create=True)
    published(table, "camera", Declared(0.1, 10_100))
    with pytest.raises(AdmissionRefused):
        Admitting(table, lambda: CELLS).subscribe("camera", 0.005, False, Wanted(size=(2, 2)))


def elsewhere(tag: str, node: str, number: int = 5, **fields: object) -> SubscriberRow:
    info = SubscriberInfo(
        id=number, node=node, pattern=tag, pid=1, user="", reliable=bool(fields.pop("reliable", False)), program=""
    )  # fmt: skip
    return SubscriberRow(info=info, **fields)  # type: ignore[arg-type]


def test_all_copies_of_a_stream_share_the_card_of_its_node(table):
    """60 kB every 10 ms to five nodes is 2.6 times what a card of 100 Mbit/s carries, though each way has room."""
    published(table, "t", Declared(0.01, 60_000))
    admitting = Admitting(table, lambda: FOUND)
    rows = [elsewhere("t", f"n{i}", deadline_s=5.0) for i in range(2, 7)]
    admitting._judge("one", [], rows[:1])
    with pytest.raises(AdmissionRefused, match="more is asked for than card of n1 can do"):
        admitting._judge("five", [], rows)


def test_streams_of_several_nodes_share_the_card_of_the_one_that_receives_them():
    nodes = [f"n{i}" for i in range(2, 5)]
    table = TagTable("n1", 1)
    table.open_tag("t", {}, create=True)
    rows = [
        PublisherRow(info=PublisherInfo(id=1, node=node, tag="t", incarnation=9, pid=1, user="", program=""),
                     depth=1, capacity_bytes=1, declared=Declared(0.01, 60_000))
        for node in nodes
    ]  # fmt: skip
    subscribed(table, "t", 5.0)
    admitting = Admitting(table, lambda: FOUND)
    admitting._judge("one", rows[:1], [])
    with pytest.raises(AdmissionRefused, match="more is asked for than card of n1 can do"):
        admitting._judge("three", rows, [])


@pytest.mark.parametrize(
    ("fields", "attributes", "setting", "transport"),
    [
        ({}, {}, "", "nak"),
        ({"reliable": True}, {}, "", "tcp"),
        ({"transport": "lateral+nak:r=4,c=3"}, {}, "", "lateral+nak:r=4,c=3"),
        ({}, {"transport": "ack"}, "", "ack"),
        ({"transport": "nak"}, {}, "ack", "ack"),
        ({"reliable": True, "transport": "nak"}, {}, "", "nak"),
    ],
)
def test_what_carries_a_stream_is_what_its_channel_has(fields, attributes, setting, transport):
    table = TagTable("n1", 1)
    row, _ = table.open_tag("t", attributes, create=True)
    if setting:
        table.put(msgspec.structs.replace(row, settings={"n2": Setting(transport=setting)}))
    found = transport_of(elsewhere("t", "n2", **fields), table.tag("t"))
    assert found == transport


def test_a_recovering_transport_is_computed_with_one_loss_where_nobody_measured_it(table):
    published(table, "t", Declared(0.01, 64))
    found = declared_system(table, FOUND, [], [elsewhere("t", "n2", deadline_s=1.0)])
    assert [part.what for part in judge(found).judged[0].parts].count("recovery") == 1
    by_udp = declared_system(table, FOUND, [], [elsewhere("t", "n2", deadline_s=1.0, transport="udp")])
    assert "recovery" not in [part.what for part in judge(by_udp).judged[0].parts]


def test_a_bound_that_the_kernel_does_not_back_is_said_so(table):
    def refuses(sched: str, node: str) -> None:
        raise QosMismatch(f"the schedule {sched} on node {node!r}", "the kernel does not let this process", "be root")

    published(table, "t", Declared(0.1, 64))
    subscribed(table, "t", 0.005)
    assert Admitting(table, never, refuses).unbacked("t") == []  # all on one node: the daemon has no thread for it
    other = TagTable("n2", 1)
    other.put(elsewhere("t", "n2", deadline_s=0.005))
    table.apply(other.delta(table.digest()))
    (said,) = Admitting(table, never, refuses).unbacked("*")
    assert said.startswith("the bound of 't' is not backed on this node: ")
    assert "fifo:32" in said
    assert Admitting(table, never, lambda sched, node: None).unbacked("t") == []


def test_streams_of_one_rung_wait_for_each_other(table):
    """They have one thread priority, so neither preempts the other: both bounds have the other's time in them."""
    published(table, "t", Declared(0.1, 64, 0.01), number=1)
    published(table, "u", Declared(0.1, 64, 0.01), number=2)
    subscribed(table, "t", 0.0601, number=8)
    subscribed(table, "u", 0.0600, number=9)
    found = declared_system(table, FOUND, [], [])
    bounds = {one.tag: one.bound_s for one in judge(found).judged}
    assert bounds["u of n1#2"] == bounds["t of n1#1"] > 0.02
    strict = {one.tag: one.bound_s for one in judge(msgspec.structs.replace(found, rungs=False)).judged}
    assert strict["u of n1#2"] < 0.02
