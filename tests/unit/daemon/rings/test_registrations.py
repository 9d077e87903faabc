"""What a subscription wants of a publisher's stream, and which rings it is therefore shown."""

from __future__ import annotations

import pytest

from ringcast.control.service import OpenChannel
from ringcast.daemon.rings.registrations import Asked, Demand, Wish, wish_of
from ringcast.daemon.streams import routes
from ringcast.daemon.streams.outgoing import wish_for
from ringcast.daemon.table.rows import PublisherRow
from ringcast.model.identity import PublisherInfo

SIZE = (4, 3)


def row(node):
    info = PublisherInfo(id=1, node=node, tag="t", incarnation=7, pid=1, user="u", program="p")
    return PublisherRow(info=info, depth=1, capacity_bytes=1)


def asked(**how):
    return routes.demand(Asked(**how), None, "me")


def test_scaling_at_the_subscriber_asks_nothing_of_anybody():
    whole = asked()
    for how in ({"every": 3}, {"size": SIZE}, {"rate_hz": 5.0}, {"size": SIZE, "every": 2}):
        assert asked(at="subscriber", **how) == whole
        assert asked(at="publisher", **how) != whole


def test_equal_wishes_are_equal_demands():
    assert asked(size=SIZE, every=2, at="node:x") == asked(size=SIZE, every=2, at="node:x")
    different = [asked(size=SIZE), asked(size=(3, 4)), asked(size=SIZE, every=2), asked(size=SIZE, rate_hz=2.0),
                 asked(size=SIZE, at="node:x"), asked(size=SIZE, reliable=True)]  # fmt: skip
    assert len(set(different)) == len(different)


@pytest.mark.parametrize(
    ("owner", "at", "wish"),
    [
        ("me", "publisher", Wish(7, SIZE, 2)),
        ("me", "node:me", Wish(7, SIZE, 2, here=True)),
        ("me", "node:other", Wish(7, SIZE, 2, here=True)),
        ("other", "publisher", None),
        ("other", "node:other", None),
        ("other", "node:me", Wish(7, SIZE, 2, here=True)),
    ],
)
def test_where_it_is_made(owner, at, wish):
    assert wish_of(row(owner), Demand(every=2, at=at, size=SIZE), "me") == wish


def test_only_a_process_of_its_own_can_fall_behind():
    reliable = Demand(at="publisher", size=SIZE, reliable=True)
    assert wish_of(row("me"), reliable, "me") == Wish(7, SIZE)
    assert wish_of(row("me"), reliable._replace(at="node:me"), "me") == Wish(7, SIZE, here=True, reliable=True)


def test_nothing_is_made_without_a_size():
    assert wish_of(row("me"), Demand(every=2, rate_hz=5.0), "me") is None
    assert wish_for(OpenChannel(incarnation=7, every=2)) is None


def test_channels_and_subscribers_share_what_is_made():
    there = wish_for(OpenChannel(incarnation=7, every=2, size=SIZE))
    assert there == wish_of(row("me"), Demand(every=2, at="publisher", size=SIZE), "me")
    between = wish_for(OpenChannel(incarnation=7, size=SIZE, here=True, transport="tcp"))
    assert between == wish_of(row("me"), Demand(at="node:me", size=SIZE, reliable=True), "me")
