"""Who is told what of nodes, publishers and subscribers."""

from __future__ import annotations

from typing import Any

from ringcast.control.answers import Done, Refused
from ringcast.control.notices import Presences
from ringcast.control.requests import Unwatch, Watch
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.observe.watchers import MAX_WATCHES, Watchers
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow
from ringcast.model.identity import Presence, PublisherInfo, SubscriberInfo

ALL: list[Any] = ["node", "publisher", "subscriber"]


def publisher(number: int, tag: str, kind: ChangeKind = ChangeKind.ADDED, alive: bool = True) -> Change:
    info = PublisherInfo(id=number, node="here", tag=tag, incarnation=number, pid=7, user="ada")
    return Change(kind, PublisherRow(info=info, depth=1, capacity_bytes=1, alive=alive))


def subscriber(number: int, pattern: str, kind: ChangeKind = ChangeKind.ADDED) -> Change:
    info = SubscriberInfo(id=number, node="here", pattern=pattern, pid=7, user="ada")
    return Change(kind, SubscriberRow(info=info))


def watch(watchers: Watchers, client: int = 1, pattern: str = "**", kinds: list[Any] = ALL, number: int = 1) -> Any:
    return watchers.handle(client, Watch(id=9, watch=number, pattern=pattern, kinds=kinds))


def said(sends: list[Any]) -> list[tuple[int, str]]:
    notices = [(send.client, send.message) for send in sends if isinstance(send.message, Presences)]
    return [(client, f"{row.kind} {row.topic or row.node} {row.came}") for client, n in notices for row in n.rows]


def test_a_watcher_is_told_what_is_there_before_its_answer() -> None:
    watchers = Watchers(Liveliness("here"))
    watchers.changed([publisher(1, "a"), subscriber(2, "b")])
    sends = watch(watchers)
    assert said(sends) == [(1, "node here True"), (1, "publisher a True"), (1, "subscriber b True")]
    assert isinstance(sends[-1].message, Done)
    assert sends[0].message.anew


def test_nothing_there_is_said_too() -> None:
    begin = watch(Watchers(Liveliness("here")), kinds=["publisher"])
    assert begin[0].message == Presences(watch=1, rows=[], anew=True)


def test_many_rows_go_in_several_notices() -> None:
    watchers = Watchers(Liveliness("here"))
    watchers.changed([publisher(i, f"{'x' * 200}/{i}") for i in range(1, 1001)])
    notices = [send.message for send in watch(watchers) if isinstance(send.message, Presences)]
    assert len(notices) > 1
    assert [notice.anew for notice in notices] == [True] + [False] * (len(notices) - 1)
    assert sum(len(notice.rows) for notice in notices) == 1001


def test_patterns_select_publishers_by_tag_and_subscribers_by_what_they_could_receive() -> None:
    watchers = Watchers(Liveliness())
    watch(watchers, 1, "lab/*/temp")
    watch(watchers, 2, "lab/one/temp")
    changes = [publisher(1, "lab/one/temp"), publisher(2, "lab/one"), subscriber(3, "**"), subscriber(4, "*/two/*")]
    assert said(watchers.changed(changes)) == [
        (1, "publisher lab/one/temp True"), (1, "subscriber ** True"), (1, "subscriber */two/* True"),
        (2, "publisher lab/one/temp True"), (2, "subscriber ** True"),
    ]  # fmt: skip


def test_a_publisher_that_left_its_ring_went() -> None:
    watchers = Watchers(Liveliness())
    watch(watchers)
    watchers.changed([publisher(1, "a")])
    assert said(watchers.changed([publisher(1, "a", ChangeKind.CHANGED, alive=False)])) == [(1, "publisher a False")]
    assert said(watchers.changed([publisher(1, "a", ChangeKind.REMOVED, alive=False)])) == []


def test_nodes_are_told_to_those_who_watch_nodes() -> None:
    watchers = Watchers(Liveliness())
    watch(watchers, 1, "a", ["node"])
    watch(watchers, 2, "a", ["publisher"])
    assert said(watchers.told([Presence(kind="node", came=True, node="there")])) == [(1, "node there True")]


def test_whoever_stops_watching_or_leaves_is_told_nothing() -> None:
    watchers = Watchers(Liveliness())
    watch(watchers, 1)
    watch(watchers, 2)
    watchers.handle(1, Unwatch(id=1, watch=1))
    watchers.leave(2)
    assert watchers.changed([publisher(1, "a")]) == []


def test_too_many_watches_and_bad_patterns_are_refused() -> None:
    watchers = Watchers(Liveliness())
    for number in range(MAX_WATCHES):
        watch(watchers, number=number)
    assert [type(send.message) for send in watch(watchers, number=MAX_WATCHES)] == [Refused]
    assert [type(send.message) for send in watch(watchers, client=2, pattern="a//b")] == [Refused]
