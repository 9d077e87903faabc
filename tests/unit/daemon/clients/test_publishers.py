"""A ring that takes the place of another one, whose readers lost their rights."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ringcast.control.answers import Published
from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import RingDown, RingUp
from ringcast.control.requests import Publish, Unpublish
from ringcast.errors import BadMessage


def instead(node: Any, client: int, tag: str, number: int, incarnation: int) -> Any:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    node.fanouts[incarnation] = ours
    request = Publish(id=1, tag=tag, incarnation=incarnation, depth=16, capacity_bytes=100, instead=number)
    return node.ask(client, request, [node.null(), node.null(), Descriptor(theirs.detach())])


def test_readers_are_shown_the_new_ring_before_the_old_one_goes(node: Any) -> None:
    for client in (1, 2):
        node.join(client)
    node.open(1, "a")
    number = node.publish(1, "a")
    node.subscribe(2, "a", 5)
    out = instead(node, 1, "a", number, 77)
    assert any(isinstance(send.message, RingUp) and send.message.ring == 77 for send in out if send.client == 2)
    assert any(isinstance(send.message, Published) for send in out if send.client == 1)
    gone = node.ask(1, Unpublish(id=2, publisher=number))
    assert any(isinstance(send.message, RingDown) for send in gone if send.client == 2)


def test_nobody_takes_anothers_place(node: Any) -> None:
    for client in (1, 2):
        node.join(client)
    for tag in ("a", "b"):
        node.open(1, tag)
    number = node.publish(1, "a")
    for at, (client, tag, which) in enumerate(((2, "a", number), (1, "b", number), (1, "a", 999))):
        with pytest.raises(BadMessage, match="could take the place of"):
            instead(node, client, tag, which, 78 + at)


def test_a_ring_whose_publisher_lost_its_right_ends_at_a_number(node: Any) -> None:
    for client in (1, 2):
        node.join(client)
    node.open(1, "a")
    number = node.publish(1, "a")
    node.subscribe(2, "a", 5)
    node.local.publishers.retire(node.local.rings[number], linger=False, end=3)
    told = [send.message for send in node.local.changed([]) if isinstance(send.message, RingDown)]
    assert [notice.end for notice in told] == [3]
