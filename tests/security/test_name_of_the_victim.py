"""Somebody introduces itself with a daemon's own name and a great age, so that it stops serving."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.control.limits import MAX_AGE_NS
from ringcast.control.peering import Hello, NodeRecord, Refusal, encode_frame
from ringcast.model.addresses import split


@pytest.mark.parametrize("where", ["nowhere", "nobody listens", "at the victim", "at another node"])
def test_the_victim_goes_on_serving(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], where: str
) -> None:
    a, b = victims("a", "b")
    control = {
        "nowhere": (), "nobody listens": ("127.0.0.1:9",), "at the victim": (a.address,),
        "at another node": (b.address,),
    }[where]  # fmt: skip
    pub = a.session.publisher("t")
    attacker = attack(a.address, name="a", incarnation=1, age_ns=MAX_AGE_NS, control=control)
    assert attacker.heard_all()
    eventually(lambda: a.refused.get("unproven name", 0) >= 1)
    assert a.session.connected
    with ringcast.connect(socket=a.daemon.socket_path, start=False) as another:
        sub = another.subscribe("t")
        pub.send(b"still here")
        assert sub.recv(30.0).data == b"still here"
    assert attacker.heard_all()
    assert a.session.connected


def test_nobody_is_that_old(victims: Callable[..., Any]) -> None:
    (a,) = victims("a")
    hello = encode_frame(Hello(record=NodeRecord("a", 1, control=("127.0.0.1:9",)), age_ns=2**63))
    with socket.create_connection(split(a.address), 30.0) as sock:
        sock.sendall(hello)
        heard = b""
        while piece := sock.recv(65536):
            heard += piece
    assert Refusal.__struct_config__.tag.encode() in heard
    assert a.session.connected
    assert a.here() == {"a"}
