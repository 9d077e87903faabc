"""What a subscription wants of a publisher's stream, and which rings it is therefore shown."""

from __future__ import annotations

import pytest

from ringcast.control.service import OpenChannel
from ringcast.daemon.rings.demand import Demand, StageSpec, SubscribeOptions, spec_of
from ringcast.daemon.streams import routes
from ringcast.daemon.streams.outgoing import spec_for
from ringcast.daemon.table.rows import PublisherRow
from ringcast.model.identity import PublisherInfo

SIZE = (4, 3)


def row(node):
    info = PublisherInfo(id=1, node=node, tag="t", incarnation=7, pid=1, user="u", program="p")
    return PublisherRow(info=info, depth=1, capacity_bytes=1)


def options(**how):
    return routes.demand(SubscribeOptions(**how), None, "me")


def test_scaling_at_the_subscriber_asks_nothing_of_anybody():
    whole = options()
    for how in ({"every": 3}, {"size": SIZE}, {"rate_hz": 5.0}, {"size": SIZE, "every": 2}):
        assert options(at="subscriber", **how) == whole
        assert options(at="publisher", **how) != whole


def test_equal_wishes_are_equal_demands():
    assert options(size=SIZE, every=2, at="node:x") == options(size=SIZE, every=2, at="node:x")
    different = [options(size=SIZE), options(size=(3, 4)), options(size=SIZE, every=2), options(size=SIZE, rate_hz=2.0),
                 options(size=SIZE, at="node:x"), options(size=SIZE, reliable=True)]  # fmt: skip
    assert len(set(different)) == len(different)


@pytest.mark.parametrize(
    ("owner", "at", "spec"),
    [
        ("me", "publisher", StageSpec(7, SIZE, 2)),
        ("me", "node:me", StageSpec(7, SIZE, 2, here=True)),
        ("me", "node:other", StageSpec(7, SIZE, 2, here=True)),
        ("other", "publisher", None),
        ("other", "node:other", None),
        ("other", "node:me", StageSpec(7, SIZE, 2, here=True)),
    ],
)
def test_where_it_is_made(owner, at, spec):
    assert spec_of(row(owner), Demand(every=2, at=at, size=SIZE), "me") == spec


def test_only_a_process_of_its_own_can_fall_behind():
    reliable = Demand(at="publisher", size=SIZE, reliable=True)
    assert spec_of(row("me"), reliable, "me") == StageSpec(7, SIZE)
    assert spec_of(row("me"), reliable._replace(at="node:me"), "me") == StageSpec(7, SIZE, here=True, reliable=True)


def test_nothing_is_made_without_a_size():
    assert spec_of(row("me"), Demand(every=2, rate_hz=5.0), "me") is None
    assert spec_for(OpenChannel(incarnation=7, every=2)) is None


def test_channels_and_subscribers_share_what_is_made():
    there = spec_for(OpenChannel(incarnation=7, every=2, size=SIZE))
    assert there == spec_of(row("me"), Demand(every=2, at="publisher", size=SIZE), "me")
    between = spec_for(OpenChannel(incarnation=7, size=SIZE, here=True, transport="tcp"))
    assert between == spec_of(row("me"), Demand(at="node:me", size=SIZE, reliable=True), "me")
