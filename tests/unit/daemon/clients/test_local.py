"""What clients of one node ask for, and what they and others are sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ringcast.control.answers import Done, Published, Refused, TagOpened
from ringcast.control.notices import RingDown, RingUp, SubscriberCount, TagGone
from ringcast.control.requests import (
    DestroyTag,
    Hello,
    ListPublishers,
    ListSubscribers,
    ListTags,
    OpenTag,
    Publish,
    Unpublish,
    Unsubscribe,
)
from ringcast.daemon.table.rows import Change, ChangeKind, SubscriberRow, tag_key
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage
from ringcast.model.identity import SubscriberInfo
from ringcast.model.tag import TagAttributes, tag_id


def kinds(messages: list[Any]) -> list[str]:
    return [type(message).__name__ for message in messages]


# ---------------------------------------------------------------------- tags


def test_a_tag_is_created_joined_and_conflicted(lab: Any) -> None:
    opened = lab.open(1, "lab/hum", depth=8)
    assert opened == TagOpened(id=1, name="lab/hum", tag_id=tag_id("lab/hum"), attributes=TagAttributes(depth=8))
    assert lab.open(2, "lab/hum") == opened
    refused = lab.open(2, "lab/hum", depth=9)
    assert refused.error == "TagConflict"
    assert refused.fields == {"name": "lab/hum", "attribute": "depth", "existing": 8, "requested": 9}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (OpenTag(id=1, name="lab/*"), "BadTagName"),
        (OpenTag(id=1, name="nowhere", create=False), "UnknownTag"),
        (OpenTag(id=1, name="x", requested={"depth": 0}), "QosMismatch"),
        (DestroyTag(id=1, name="nowhere"), "UnknownTag"),
        (ListTags(id=1, pattern="//"), "BadTagName"),
    ],
)
def test_refusals_name_the_error(lab: Any, request_: Any, error: str) -> None:
    assert lab.answer(1, request_).error == error


def test_a_tag_outlives_its_creator(lab: Any) -> None:
    lab.local.leave(1)
    assert lab.answer(2, OpenTag(id=1, name="lab/temp", create=False)).name == "lab/temp"


# ---------------------------------------------------------------------- publishers and subscribers


def test_a_subscriber_is_told_of_rings_before_its_answer(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    out = lab.subscribe(2, "lab/temp", 5)
    up, done = lab.to(2, out)
    assert isinstance(up, RingUp)
    assert (up.subscription, up.info.id, up.info.pid, up.born_after, up.alive) == (5, publisher, 1001, False, True)
    assert isinstance(done, Done)
    assert len(next(send for send in out if send.client == 2).fds) == 2
    assert lab.to(1, out) == [SubscriberCount(publisher=publisher, count=1)]


def test_a_ring_born_later_is_announced_to_whom_it_matches(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 5)
    lab.subscribe(3, "other", 6)
    number, out = lab.publish_all(1, "lab/temp")
    (up,) = lab.to(2, out)
    assert (up.subscription, up.born_after) == (5, True)
    assert lab.to(3, out) == []
    (published,) = lab.to(1, out)
    assert published == Published(id=1, info=up.info, subscribers=1)
    assert number == up.info.id


def test_one_client_may_hold_several_rights_on_a_tag(lab: Any) -> None:
    lab.subscribe(1, "lab/temp", 1)
    lab.subscribe(1, "lab/temp", 2)
    first, second = lab.publish(1, "lab/temp"), lab.publish(1, "lab/temp")
    assert first != second
    assert len(lab.local.table.publishers("lab/temp")) == 2
    assert len(lab.local.table.subscribers("lab/temp")) == 2


def test_counts_change_once_per_request_and_ignore_histories(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    out = lab.subscribe(2, "lab/temp", 1, role="history")
    assert lab.to(1, out) == []
    lab.subscribe(2, "lab/temp", 2)
    lab.subscribe(2, "**", 3)
    out = lab.local.leave(2)
    assert lab.to(1, out) == [SubscriberCount(publisher=publisher, count=0)]


def test_subscribers_on_other_nodes_count(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    row = SubscriberRow(info=SubscriberInfo(id=1, node="n2", pattern="lab/**", pid=1, user="u"))
    lab.local.table._show(None, row)
    out = lab.local.changed([Change(ChangeKind.ADDED, row)])
    assert lab.to(1, out) == [SubscriberCount(publisher=publisher, count=1)]


def test_a_publisher_that_closes_is_taken_down(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 5)
    publisher = lab.publish(1, "lab/temp", incarnation=77)
    out = lab.ask(1, Unpublish(id=3, publisher=publisher))
    assert lab.to(2, out) == [RingDown(subscription=5, incarnation=77)]
    assert lab.to(1, out) == [Done(id=3)]
    assert lab.answer(1, Unpublish(id=4, publisher=publisher)) == Done(id=4)


def test_nobody_can_take_down_anothers_publisher(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    lab.ask(2, Unpublish(id=1, publisher=publisher))
    assert lab.local.rings[publisher].alive


def test_an_unsubscribed_one_hears_nothing_more(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 5)
    assert lab.answer(2, Unsubscribe(id=9, subscription=5)) == Done(id=9)
    _, out = lab.publish_all(1, "lab/temp")
    assert lab.to(2, out) == []
    assert lab.answer(2, Unsubscribe(id=9, subscription=5)) == Done(id=9)


def test_a_bad_ring_is_refused_and_nothing_changed(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 5)
    number, out = lab.publish_all(1, "lab/temp", incarnation=13)
    assert number == 0
    (refused,) = lab.to(1, out)
    assert refused == Refused(id=1, error="CorruptRing", fields={"detail": "its memory is not sealed"})
    assert lab.to(2, out) == []
    assert len(lab.local.rings) == 0
    assert lab.local.table.publishers("lab/temp") == []


def test_publishing_on_an_unknown_tag(lab: Any) -> None:
    _, out = lab.publish_all(1, "nowhere")
    assert lab.to(1, out)[0].error == "UnknownTag"


def test_a_tag_without_waiting_takes_no_reliable_subscriber(lab: Any) -> None:
    lab.open(1, "fast", max_wait_s=0)
    (refused,) = lab.to(2, lab.subscribe(2, "fast", 1, reliable=True))
    assert refused.error == "QosMismatch"
    assert kinds(lab.to(2, lab.subscribe(2, "fast", 1))) == ["Done"]


# ---------------------------------------------------------------------- rings left behind


def test_a_history_sees_rings_that_outlived_their_publishers(lab: Any) -> None:
    lab.publish(1, "lab/temp", incarnation=77)
    lab.local.leave(1)
    up, _ = lab.to(2, lab.subscribe(2, "lab/temp", 1, role="history"))
    assert (up.info.incarnation, up.alive, up.born_after) == (77, False, False)
    assert kinds(lab.to(3, lab.subscribe(3, "lab/temp", 1))) == ["Done"]


def test_a_history_keeps_a_ring_until_the_node_lets_go_of_it(lab: Any) -> None:
    lab.subscribe(2, "lab/temp", 1, role="history")
    publisher = lab.publish(1, "lab/temp", incarnation=77, capacity_bytes=600)
    monitor = lab.monitor(publisher)
    assert lab.to(2, lab.ask(1, Unpublish(id=1, publisher=publisher))) == []
    assert not monitor.closed
    _, out = lab.publish_all(3, "lab/temp", capacity_bytes=600)
    down, up = lab.to(2, out)
    assert down == RingDown(subscription=1, incarnation=77)
    assert up.born_after
    assert monitor.closed
    assert lab.local.budget.used_bytes == 600


def test_a_ring_that_never_sent_is_not_kept(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    lab.monitor(publisher).sent = 0
    lab.local.leave(1)
    assert len(lab.local.rings) == 0
    assert lab.local.budget.used_bytes == 0


def test_no_space_for_live_rings_is_refused(lab: Any) -> None:
    lab.publish(1, "lab/temp", capacity_bytes=600)
    _, out = lab.publish_all(2, "lab/temp", capacity_bytes=600)
    (refused,) = lab.to(2, out)
    assert refused.fields == {"wanted_bytes": 600, "free_bytes": 400, "budget_bytes": 1000}


def test_a_publisher_that_lost_its_connection_comes_back_with_its_ring(lab: Any) -> None:
    first = lab.publish(1, "lab/temp", incarnation=77, capacity_bytes=600)
    lab.local.leave(1)
    lab.join(4, pid=1001)
    second = lab.publish(4, "lab/temp", incarnation=77, capacity_bytes=600)
    assert first != second
    assert [row.info.id for row in lab.local.table.publishers("lab/temp")] == [second]


def test_nobody_else_can_come_back_as_it(lab: Any) -> None:
    lab.publish(1, "lab/temp", incarnation=77)
    with pytest.raises(BadMessage, match="incarnation"):
        lab.publish_all(2, "lab/temp", incarnation=77)
    lab.local.leave(1)
    with pytest.raises(BadMessage, match="incarnation"):
        lab.publish_all(2, "lab/temp", incarnation=77)


# ---------------------------------------------------------------------- destroying


def test_a_tag_in_use_is_not_destroyed(lab: Any) -> None:
    lab.publish(2, "lab/temp")
    lab.subscribe(3, "lab/temp", 1)
    refused = lab.answer(1, DestroyTag(id=1, name="lab/temp"))
    assert refused.fields == {"name": "lab/temp", "publishers": 1, "subscribers": 1}


def test_ones_own_rights_wildcards_and_histories_do_not_hold_a_tag(lab: Any) -> None:
    lab.publish(1, "lab/temp", incarnation=77)
    lab.subscribe(1, "lab/temp", 1)
    lab.subscribe(2, "lab/*", 2)
    lab.subscribe(3, "lab/temp", 3, role="history")
    out = lab.ask(1, DestroyTag(id=8, name="lab/temp"))
    assert kinds(lab.to(1, out)) == ["TagGone", "Done"]
    assert lab.to(2, out) == [RingDown(subscription=2, incarnation=77)]
    assert lab.to(3, out) == [TagGone(name="lab/temp")]
    assert lab.local.table.tags() == []


def test_a_forced_destroy_tells_every_holder_once_and_drops_all(lab: Any) -> None:
    lab.publish(2, "lab/temp")
    lab.publish(2, "lab/temp")
    lab.subscribe(3, "lab/temp", 1)
    old = lab.publish(1, "lab/temp")
    lab.ask(1, Unpublish(id=1, publisher=old))
    out = lab.ask(1, DestroyTag(id=8, name="lab/temp", force=True))
    assert lab.to(1, out) == [Done(id=8)]
    assert lab.to(2, out) == [TagGone(name="lab/temp")]
    assert lab.to(3, out) == [TagGone(name="lab/temp")]
    assert len(lab.local.rings) == 0
    assert lab.local.budget.used_bytes == 0
    assert lab.local.table.publishers("lab/temp") == []
    assert lab.local.table.subscribers("lab/temp") == []
    assert lab.open(2, "lab/temp", depth=5).attributes.depth == 5


def test_a_tag_destroyed_on_another_node_is_gone_for_its_holders(lab: Any) -> None:
    other = TagTable("other", 1)
    other.open_tag("far", {})
    lab.local.table.apply(other.delta({}))
    lab.publish(2, "far")
    lab.subscribe(3, "far", 1)
    other.destroy("far")
    out = lab.local.changed(lab.local.table.apply(other.delta(lab.local.table.digest())))
    assert lab.to(2, out) == [TagGone(name="far")]
    assert lab.to(3, out) == [TagGone(name="far")]
    assert len(lab.local.rings) == 0


def test_a_tag_that_nobody_keeps_is_not_gone_for_its_holders(lab: Any) -> None:
    other = TagTable("other", 1)
    other.open_tag("far", {})
    lab.local.table.apply(other.delta({}))
    lab.publish(2, "far")
    other.remove(tag_key("far"))
    changes = lab.local.table.apply(other.delta(lab.local.table.digest())) + lab.local.table.give_up("far")
    assert [change.kind for change in changes] == [ChangeKind.REMOVED]
    assert lab.to(2, lab.local.changed(changes)) == []
    assert len(lab.local.rings) == 1


def test_a_tag_that_changes_hands_concerns_nobody(lab: Any) -> None:
    lab.publish(2, "lab/temp")
    row = msgspec.structs.replace(lab.local.table.tag("lab/temp"), primary="other", term=1)
    assert lab.local.changed([Change(ChangeKind.CHANGED, row)]) == []
    assert len(lab.local.rings) == 1


# ---------------------------------------------------------------------- clients that leave


def test_everything_of_a_client_goes_with_it(lab: Any) -> None:
    lab.publish(1, "lab/temp", incarnation=77)
    lab.subscribe(1, "lab/temp", 1, lab.memfd())
    lab.subscribe(2, "lab/**", 1)
    other = lab.publish(2, "lab/temp")
    lab.announcements(other)
    out = lab.local.leave(1)
    assert lab.to(1, out) == []
    assert lab.to(2, out) == [RingDown(subscription=1, incarnation=77), SubscriberCount(publisher=other, count=1)]
    assert [what for what, _ in lab.announcements(other)] == ["remove"]
    assert 1 not in lab.local.clients
    assert lab.local.leave(1) == []


def test_the_slots_of_a_dead_process_are_freed_on_every_ring(lab: Any) -> None:
    live, left = lab.publish(1, "lab/temp"), lab.publish(1, "lab/temp")
    lab.ask(1, Unpublish(id=1, publisher=left))
    lab.local.process_died(4321)
    assert lab.monitor(live).freed == [4321]
    assert lab.monitor(left).freed == [4321]


# ---------------------------------------------------------------------- listings


def test_listings_show_what_there_is(lab: Any) -> None:
    lab.join(4, counters=True)
    first = lab.publish(1, "lab/temp")
    lab.publish(1, "lab/temp")
    lab.ask(1, Unpublish(id=1, publisher=first))
    lab.subscribe(4, "lab/*", 1, counter_index=3)
    lab.subscribe(4, "lab/temp", 2, counter_index=99)
    lab.subscribe(4, "lab/temp", 3, role="history")
    (tag,) = lab.answer(2, ListTags(id=1)).rows
    assert (tag.name, tag.publishers, tag.subscribers, tag.sent, tag.bytes) == ("lab/temp", 1, 2, 2, 20)
    assert tag.last_sent_ns == 7
    publishers = lab.answer(2, ListPublishers(id=1, tag="lab/*")).rows
    assert sorted(status.alive for status in publishers) == [False, True]
    subscribers = lab.answer(2, ListSubscribers(id=1, tag="lab/temp")).rows
    assert {status.info.pattern: status.counters for status in subscribers} == {
        "lab/*": {"received": 3},
        "lab/temp": {},
    }
    assert lab.answer(2, ListTags(id=1, pattern="other/**", local=True)).rows == []


def test_long_listings_come_in_pages_that_fit_a_packet(lab: Any) -> None:
    from ringcast.control.framing import encode

    for number in range(1500):
        lab.open(1, f"many/{number:04}/{'x' * 60}")
    pages = lab.to(2, lab.ask(2, ListTags(id=6, pattern="many/**")))
    assert len(pages) > 1
    assert [page.more for page in pages] == [True] * (len(pages) - 1) + [False]
    assert {page.id for page in pages} == {6}
    assert sum(len(page.rows) for page in pages) == 1500
    for page in pages:
        encode(page)


def test_the_largest_attributes_fit_every_message_that_carries_them(lab: Any) -> None:
    from ringcast.control.framing import encode

    schema = {"x": "y" * 32_000}
    lab.open(1, "x" * 255, schema=schema)
    lab.subscribe(2, "*", 1)
    _, out = lab.publish_all(1, "x" * 255)
    refused = lab.open(3, "x" * 255, schema={"x": "z" * 32_000})
    for message in [*lab.to(2, out), *lab.to(2, lab.ask(2, ListTags(id=1))), refused]:
        encode(message)
    assert refused.error == "TagConflict"


# ---------------------------------------------------------------------- against the protocol


def test_breaking_the_protocol_is_a_bad_message(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 5)
    with pytest.raises(BadMessage, match="exists"):
        lab.subscribe(2, "lab/*", 5)
    with pytest.raises(BadMessage, match="expected 3"):
        lab.ask(1, Publish(id=1, tag="lab/temp", incarnation=5, depth=1, capacity_bytes=1), [lab.null()])
    with pytest.raises(BadMessage, match="not a socket"):
        lab.ask(
            1,
            Publish(id=1, tag="lab/temp", incarnation=5, depth=1, capacity_bytes=1),
            [lab.null(), lab.null(), lab.null()],
        )
    with pytest.raises(BadMessage, match="out of turn"):
        lab.ask(1, Hello(id=1))
    with pytest.raises(BadMessage, match="expected 0"):
        lab.ask(1, ListTags(id=1), [lab.null()])
