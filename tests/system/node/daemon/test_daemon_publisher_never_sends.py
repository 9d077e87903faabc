"""A publisher reads its fan-out socket only when it sends. One that never does holds nobody up and misses nothing."""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

from ringcast.control.answers import Done
from ringcast.control.notices import SubscriberCount
from ringcast.control.requests import OpenTag, Subscribe, Unsubscribe

MAILBOXES = 600  # more than a socket holds


def announced(fanout: socket.socket) -> tuple[int, int]:
    data, fds, _, _ = socket.recv_fds(fanout, 100, 4)
    for fd in fds:
        os.close(fd)
    op, _, mailbox = struct.unpack("=IIQ", data)
    return op, mailbox


def test_its_announcements_wait_and_all_arrive(daemon: Any, wire: Any, open_wire: Any) -> None:
    wire.ask(OpenTag, name="lab/temp")
    published = wire.publish("lab/temp")
    reader = open_wire(daemon.socket_path)
    for number in range(MAILBOXES):
        page = os.memfd_create("mailbox")
        answer = reader.ask(Subscribe, [page], pattern="lab/temp", subscription=number, mailbox=True)
        assert isinstance(answer, Done)
        os.close(page)
    fanout = wire._fanouts[0]
    fanout.settimeout(30)
    assert announced(fanout)[0] == 7  # the page with the version
    known = {announced(fanout) for _ in range(MAILBOXES)}
    assert {op for op, _ in known} == {1}
    assert len(known) == MAILBOXES
    reader.ask(Unsubscribe, subscription=0)
    op, mailbox = announced(fanout)
    assert op == 2
    assert (1, mailbox) in known
    assert wire.status().clients == 2
    assert SubscriberCount(publisher=published.info.id, count=MAILBOXES) in wire.notices


def test_it_can_leave_with_announcements_waiting(daemon: Any, wire: Any, open_wire: Any, eventually: Any) -> None:
    publisher = open_wire(daemon.socket_path)
    publisher.ask(OpenTag, name="lab/temp")
    publisher.publish("lab/temp")
    for number in range(MAILBOXES):
        page = os.memfd_create("mailbox")
        wire.ask(Subscribe, [page], pattern="lab/temp", subscription=number, mailbox=True)
        os.close(page)
    publisher.close()
    eventually(lambda: wire.status().rings == 0)
    again = open_wire(daemon.socket_path)
    assert again.publish("lab/temp").subscribers == MAILBOXES
