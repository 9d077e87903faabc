"""The daemon's limit of open files is reached. Newcomers are told so, those inside go on, and room is used again."""

from __future__ import annotations

import os
import resource
from typing import Any

import pytest

import ringcast
from ringcast.control.answers import Refused, Welcome
from ringcast.control.requests import Hello, ListTags, OpenTag, Subscribe
from ringcast.daemon.rings.kept_files import without_descriptors


@pytest.fixture
def short(daemon: Any, wire: Any) -> int:
    """Leave the daemon room for a few more descriptors; returns for how many."""
    pid = daemon.process.pid
    used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    limit = max(used) + 4
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
    return limit - len(used)


def test_newcomers_are_told_and_come_in_later(
    daemon: Any, wire: Any, open_wire: Any, short: int, eventually: Any
) -> None:
    inside = [open_wire(daemon.socket_path) for _ in range(short)]
    outside = open_wire(daemon.socket_path, greet=False)
    told = outside.receive()
    assert isinstance(told, Refused)
    assert told.id == 0
    assert told.error == "ResourceLimit"
    assert "ulimit -n" in told.fields["remedy"]
    assert outside.receive() is None
    wire.ask(OpenTag, name="still/works")
    assert [row.name for row in inside[0].ask(ListTags).rows] == ["still/works"]
    inside[0].close()
    eventually(lambda: isinstance(open_wire(daemon.socket_path, greet=False).ask(Hello), Welcome))


def test_a_request_whose_descriptors_do_not_fit_is_refused_and_the_session_goes_on(wire: Any, short: int) -> None:
    wire.ask(OpenTag, name="lab/temp")
    refused = None
    held = 0
    while refused is None:
        assert held <= short, "more descriptors than there are"
        page = os.memfd_create("mailbox")
        answer = wire.ask(Subscribe, [page], pattern="lab/temp", subscription=held + 1, mailbox=True)
        os.close(page)
        if isinstance(answer, Refused):
            refused = answer
        else:
            held += 1
    assert held == short
    assert refused.error == "ResourceLimit"
    assert "ulimit -n" in refused.fields["remedy"]
    assert wire.status().clients == 1


def test_a_publisher_takes_one_descriptor_of_the_daemon_and_its_ring_can_be_read(daemon: Any, eventually: Any) -> None:
    """Where the kernel keeps files without descriptors; else its ring and bell have one each."""

    files = f"/proc/{daemon.process.pid}/fd"
    each = 1 if without_descriptors() else 3
    with ringcast.connect(daemon.socket_path, start=False) as session:
        first = session.tag("first").publisher()
        before = len(os.listdir(files))
        pubs = [session.tag(f"held/{number}", depth=16, capacity_bytes=4096).publisher() for number in range(20)]
        eventually(lambda: len(os.listdir(files)) <= before + 20 * each)
        subs = [session.subscribe(f"held/{number}") for number in range(20)]
        for number, pub in enumerate(pubs):
            pub.send(b"%d" % number)
        assert [sub.recv(timeout=30).data for sub in subs] == [b"%d" % number for number in range(20)]
        first.close()
