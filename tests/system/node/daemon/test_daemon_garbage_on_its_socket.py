"""Somebody writes nonsense to the daemon's socket. It is counted, that connection ends, the others do not notice."""

from __future__ import annotations

import array
import os
import socket
from typing import Any

import pytest

from ringcast.control import link
from ringcast.control.answers import Refused, Welcome
from ringcast.control.framing import encode
from ringcast.control.requests import Hello, ListTags, OpenTag, Publish, Subscribe
from ringcast.control.wire import PROTOCOL_VERSION

NONSENSE = {
    "noise": b"\xff\x00 what is this",
    "half a message": encode(OpenTag(id=1, name="lab/temp"))[:-3],
    "an unknown kind": b"\x81\xa1t\xa4nope",
    "too long": bytes(100_000),
    "deeply nested": b"\x91" * 60_000,
}


def fds_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize("packet", NONSENSE.values(), ids=NONSENSE.keys())
@pytest.mark.parametrize("greet", [False, True], ids=["stranger", "client"])
def test_it_is_counted_and_the_connection_closed(
    daemon: Any, wire: Any, open_wire: Any, packet: bytes, greet: bool
) -> None:
    wire.ask(OpenTag, name="lab/temp")
    before = fds_of(daemon.process.pid)
    bad = open_wire(daemon.socket_path, greet=greet)
    bad.socket.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    told = bad.receive()
    assert isinstance(told, Refused)
    assert (told.id, told.error) == (0, "BadMessage")
    assert bad.receive() is None
    assert wire.status().bad_messages == 1
    assert [row.name for row in wire.ask(ListTags).rows] == ["lab/temp"]
    assert fds_of(daemon.process.pid) <= before + 1  # it may go on watching our process, which is a client's anyway


def test_a_request_before_hello(daemon: Any, wire: Any, open_wire: Any) -> None:
    rude = open_wire(daemon.socket_path, greet=False)
    assert rude.ask(ListTags).error == "BadMessage"
    assert rude.receive() is None
    assert wire.status().bad_messages == 1


def test_hello_twice(daemon: Any, wire: Any, open_wire: Any) -> None:
    strange = open_wire(daemon.socket_path)
    assert strange.ask(Hello).error == "BadMessage"
    assert strange.receive() is None


def test_descriptors_that_are_not_what_they_should_be(wire: Any) -> None:
    """Files instead of rings are the sender's mistake, and refused; they do not even cost the connection."""
    wire.ask(OpenTag, name="lab/temp")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    unsealed = os.memfd_create("unsealed")
    os.ftruncate(unsealed, 1 << 20)
    how = {"tag": "lab/temp", "incarnation": 5, "depth": 16, "capacity_bytes": 4096}
    for fd in (0, unsealed):
        refused = wire.ask(Publish, [fd, fd, theirs.fileno()], **how)
        assert refused.error == "CorruptRing"
    assert wire.status().rings == 0
    for sock in (ours, theirs):
        sock.close()
    os.close(unsealed)


def test_a_client_of_another_version_is_told_so(daemon: Any, wire: Any, open_wire: Any) -> None:
    stranger = open_wire(daemon.socket_path, greet=False)
    refused = stranger.ask(Hello, version=99)
    assert refused.error == "BadMessage"
    assert f"protocol {PROTOCOL_VERSION}" in refused.fields["reason"]
    assert "99" in refused.fields["reason"]
    assert stranger.receive() is None
    assert wire.status().bad_messages == 0


def test_what_a_bad_client_held_is_withdrawn(daemon: Any, wire: Any, open_wire: Any) -> None:
    wire.ask(Subscribe, pattern="**", subscription=1)
    bad = open_wire(daemon.socket_path)
    bad.ask(OpenTag, name="lab/temp")
    published = bad.publish("lab/temp")
    assert wire.notice().info == published.info
    link.send_packet(bad.socket, b"nonsense")
    assert wire.notice().incarnation == published.info.incarnation


def test_many_strangers_at_once(daemon: Any, wire: Any, open_wire: Any) -> None:
    strangers = [open_wire(daemon.socket_path, greet=False) for _ in range(100)]
    for number, stranger in enumerate(strangers):
        stranger.socket.send(bytes([number]) * 50)
    for stranger in strangers:
        while stranger.receive() is not None:
            pass
    assert wire.status().bad_messages == 100
    assert isinstance(open_wire(daemon.socket_path, greet=False).ask(Hello), Welcome)
