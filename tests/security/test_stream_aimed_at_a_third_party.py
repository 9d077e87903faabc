"""Somebody asks for a stream and says that it lives at the address of a third party."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.control import service
from ringcast.control.peering import Failure, Reply

THIRD_PARTY = "192.0.2.1"  # nobody's: RFC 5737


def requests(incarnation: int, transport: str) -> list[tuple[str, bytes]]:
    opened = service.OpenChannel(incarnation=incarnation, key=7, address=":5555", transport=transport)
    started = service.StartChannel(incarnation=incarnation, key=7, first_seq=0, address=":5555", transport=transport)
    return [(service.OPEN, service.encode(opened)), (service.START, service.encode(started))]


@pytest.mark.parametrize("transport", ["udp", "nak"])
@pytest.mark.parametrize("control", [(f"{THIRD_PARTY}:7417",), (), (f"[::ffff:{THIRD_PARTY}]:1", f"{THIRD_PARTY}:2")])
def test_nothing_is_sent_there(
    victims: Callable[..., Any], attack: Callable[..., Any], transport: str, control: tuple[str, ...]
) -> None:
    (a,) = victims("a")
    pub = a.session.publisher("t")
    incarnation = a.session.tag("t").publishers()[0].info.incarnation
    attacker = attack(a.address, control=control)
    for name, payload in requests(incarnation, transport):
        answer = attacker.ask(name, payload)
        assert isinstance(answer, Failure)
        assert "data is sent only to where a node is" in str(answer.fields)
    pub.send(b"secret")
    assert a.session.channels() == []
    assert a.refused["unproven address"] == 2


def test_whoever_asks_from_its_own_address_is_served(victims: Callable[..., Any], attack: Callable[..., Any]) -> None:
    (a,) = victims("a")
    pub = a.session.publisher("t")
    incarnation = a.session.tag("t").publishers()[0].info.incarnation
    honest = attack(a.address, control=(f"{THIRD_PARTY}:7417", "127.0.0.1:9"))
    for name, payload in requests(incarnation, "udp"):
        assert isinstance(honest.ask(name, payload), Reply)
    (channel,) = a.session.channels()
    assert (channel.direction, channel.node) == ("out", "mallory")
    pub.close()
