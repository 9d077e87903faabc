"""Somebody fills the table: tags without end, and names that no client could give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.control import service
from ringcast.control.limits import MAX_BUFFERS_PER_PEER, MAX_TAGS_PER_NODE
from ringcast.control.peering import Failure, Reply
from ringcast.control.requests import SetChannel
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow, TagRow
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes

PAGE = 512


def tag(name: str) -> TagRow:
    return TagRow(name=name, attributes=TagAttributes(), primary="mallory", born=1)


def test_a_node_has_so_many_tags_and_others_go_on(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    a, b = victims("a", "b")
    attacker = attack(a.address)
    for first in range(0, MAX_TAGS_PER_NODE + 2 * PAGE, PAGE):
        attacker.say_rows("mallory", 1, *(tag(f"x{number}") for number in range(first, first + PAGE)), since=first)
    assert attacker.heard_all()
    assert a.refused["too many rows"] == 2 * PAGE
    assert a.session.status().tags == MAX_TAGS_PER_NODE
    b.session.publisher("mine")
    eventually(lambda: a.knows("mine"))


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "", "x" * 300, "a//b", "a/*", "\u202egnp"])
def test_names_that_are_none_do_not_come_in(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], name: str
) -> None:
    (a,) = victims("a")
    publisher = PublisherInfo(id=1, node="mallory", tag=name, incarnation=1, pid=1, user="u")
    subscriber = SubscriberInfo(id=2, node="mallory", pattern=name, pid=1, user="u\n")
    attacker = attack(a.address)
    attacker.say_rows(
        "mallory", 1, tag(name), PublisherRow(info=publisher, depth=1, capacity_bytes=1),
        SubscriberRow(info=subscriber), tag("good"),
    )  # fmt: skip
    assert attacker.heard_all()
    assert [row.name for row in a.session.tags("**")] == ["good"]
    assert a.refused["bad name in a row"] == 3
    for asked in (
        (service.DESTROY, service.DestroyTag(name=name[:255])),
        (service.HOLD, service.Buffer(number=1, tag="a\n", depth=1)),
        (service.SET, SetChannel(id=1, tag=name[:300], transport="udp")),
        (service.SET, SetChannel(id=1, tag="good", node="a\n", transport="udp")),
        (service.SET, SetChannel(id=1, tag="good", at="elsewhere")),
    ):  # fmt: skip
        assert isinstance(attacker.ask(asked[0], service.encode(asked[1])), Failure)


def test_a_node_has_so_many_buffers_held(victims: Callable[..., Any], attack: Callable[..., Any]) -> None:
    (a,) = victims("a")
    attacker = attack(a.address)
    answers = [
        attacker.ask(service.HOLD, service.encode(service.Buffer(number=number, tag=f"t{number}", depth=8)))
        for number in range(MAX_BUFFERS_PER_PEER + 3)
    ]
    assert [isinstance(answer, Reply) for answer in answers] == [True] * MAX_BUFFERS_PER_PEER + [False] * 3
    assert "as many as one node may" in str(answers[-1].fields)
    assert a.refused["too many buffers"] == 3
