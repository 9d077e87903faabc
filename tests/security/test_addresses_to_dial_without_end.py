"""Somebody names thousands of addresses, so that a daemon dials whomever the attacker likes."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ringcast.control.limits import DIAL_BURST, DIALS_PER_MINUTE
from ringcast.control.peering import MAX_RUMOURS, NodeRecord, Rumour, Rumours


@pytest.fixture
def bystander() -> Iterator[socket.socket]:
    """Listens at every address of the loopback network, and never asked to be called."""
    with socket.create_server(("0.0.0.0", 0), backlog=4096) as sock:
        sock.setblocking(False)
        yield sock


def calls(sock: socket.socket) -> int:
    """How often it was called so far, hanging up each time."""
    count = 0
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        while selector.select(0.2):
            sock.accept()[0].close()
            count += 1
    return count


def test_a_daemon_dials_so_many_and_then_slowly(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], bystander: socket.socket
) -> None:
    (a,) = victims("a")
    port = bystander.getsockname()[1]
    begin_s = time.monotonic()
    attacker, called = attack(a.address), 0
    for batch in range(8):
        records = [
            NodeRecord(f"x{batch}-{i}", 2**62 + batch * MAX_RUMOURS + i, control=(f"127.{batch + 1}.{i}.1:{port}",))
            for i in range(MAX_RUMOURS)
        ]
        # A few at a time: each is a neighbour while there are few, and is dialled.
        for first in range(0, MAX_RUMOURS, 8):
            dead = [Rumour(record, 2) for record in records[max(0, first - 8) : first]]
            attacker.say(Rumours(rumours=dead + [Rumour(record) for record in records[first : first + 8]]))
        assert attacker.heard_all()
        called += calls(bystander)
    eventually(lambda: a.refused.get("dial put off", 0) > 0)
    called += calls(bystander)
    elapsed_s = time.monotonic() - begin_s
    assert called <= DIAL_BURST + DIALS_PER_MINUTE / 60 * elapsed_s + 1
    victims("b")  # who dials and is let in
