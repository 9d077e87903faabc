"""A client dies without a word. What it held is withdrawn, though its children may still hold its socket."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest

from ringcast.control.notices import RingDown, RingUp, SubscriberCount
from ringcast.control.requests import ListPublishers, ListTags, OpenTag, Subscribe

PUBLISHER = """
    import ringcast
    session = ringcast.connect(start=False)
    pub = session.publisher("lab/temp")
    pub.send(b"21.5")
    print("ready")
    input()
    """


def test_its_ring_goes_down_and_can_still_be_pulled(program: Any, wire: Any) -> None:
    wire.ask(Subscribe, pattern="lab/*", subscription=1)
    publisher = program(PUBLISHER)
    publisher.expect("ready")
    up = wire.notice()
    assert isinstance(up, RingUp)
    assert up.info.pid == publisher.pid
    assert up.born_after
    publisher.kill()
    assert wire.notice() == RingDown(subscription=1, incarnation=up.info.incarnation)
    wire.ask(Subscribe, pattern="lab/temp", subscription=2, role="history")
    left = wire.notice()
    assert (left.info, left.alive) == (up.info, False)
    (tag,) = wire.ask(ListTags).rows
    assert (tag.publishers, tag.sent) == (0, 1)
    assert [row.alive for row in wire.ask(ListPublishers, tag="lab/temp").rows] == [False]
    assert wire.status().lingering == 1


@pytest.fixture
def no_process_left_behind() -> Any:
    """Children of killed programs, ended by their ids."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_children_that_hold_its_socket_do_not_keep_it_alive(
    program: Any, daemon: Any, wire: Any, no_process_left_behind: list[int]
) -> None:
    """The child here has the very socket, as one made by another library's fork might: only the pidfd can tell."""
    holder = program(
        """
        import os, socket, sys, time
        from ringcast.control import link
        from ringcast.control.answers import *
        from ringcast.control.notices import *
        from ringcast.control.requests import *
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(os.environ["RINGCAST_SOCKET"])
        for request in (Hello(id=1), Subscribe(id=2, pattern="lab/temp", subscription=1)):
            link.send(sock, request)
            link.receive_reply(sock)
        child = os.fork()
        if child == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            time.sleep(600)
        print(child)
        input()
        """
    )
    child = int(holder.line())
    no_process_left_behind.append(child)
    wire.ask(OpenTag, name="lab/temp")
    published = wire.publish("lab/temp")
    assert published.subscribers == 1
    holder.kill()
    assert wire.notice() == SubscriberCount(publisher=published.info.id, count=0)
    os.kill(child, 0)
    assert wire.status().clients == 1


def test_its_mailbox_is_taken_from_the_publishers(program: Any, wire: Any) -> None:
    wire.ask(OpenTag, name="lab/temp")
    published = wire.publish("lab/temp")
    reader = program(
        """
        import ringcast
        with ringcast.connect(start=False) as session:
            sub = session.subscribe("lab/*")  # brings a mailbox
            print("ready")
            input()
        """
    )
    reader.expect("ready")
    assert wire.notice() == SubscriberCount(publisher=published.info.id, count=1)
    fanout = wire._fanouts[0]
    fanout.settimeout(30)
    _, page, _, _ = socket.recv_fds(fanout, 100, 4)  # with the version
    os.close(page[0])
    data, fds, _, _ = socket.recv_fds(fanout, 100, 4)
    assert (data[0], len(fds)) == (1, 1)
    os.close(fds[0])
    reader.kill()
    removed, fds, _, _ = socket.recv_fds(fanout, 100, 4)
    assert (removed[0], removed[4:], fds) == (2, data[4:], [])
    assert wire.notice() == SubscriberCount(publisher=published.info.id, count=0)


def test_its_reliable_slots_are_freed(program: Any, wire: Any, eventually: Any) -> None:
    """All of them: as many readers again fit in when it is gone."""
    from ringcast import _core

    wire.ask(OpenTag, name="lab/temp")
    wire.publish("lab/temp")
    writer = wire.writers[0]
    source = f"""
        import ringcast
        session = ringcast.connect(start=False)
        subs = [session.subscribe("lab/temp", reliable=True) for _ in range({_core.RELIABLE_SLOTS})]
        print("ready")
        input()
        """
    first = program(source)
    first.expect("ready")
    first.kill()
    eventually(lambda: wire.status().clients == 1)
    eventually(lambda: _free(writer))
    second = program(source)
    second.expect("ready")


def _free(writer: Any) -> bool:
    from ringcast import _core
    from ringcast.errors import QosMismatch

    reader = _core.RingReader(reliable=True)
    try:
        return reader.attach(
            writer.ring_fd, writer.bell_fd, depth=writer.depth, capacity_bytes=4096, incarnation=writer.incarnation
        )
    except QosMismatch:
        return False
    finally:
        reader.close()


def test_many_clients_killed_at_once(program: Any, wire: Any, eventually: Any) -> None:
    wire.ask(OpenTag, name="lab/temp")
    published = wire.publish("lab/temp")
    source = """
        import ringcast
        session = ringcast.connect(start=False)
        subs = [session.subscribe("lab/*") for _ in range(20)]
        pubs = [session.publisher(f"other/{i}") for i in range(20)]
        print("ready")
        input()
        """
    programs = [program(source) for _ in range(3)]
    for one in programs:
        one.expect("ready")
    for one in programs:
        one.kill()
    eventually(lambda: wire.status().clients == 1)
    assert wire.status().rings == 1  # theirs never sent anything, so there was nothing to keep
    assert SubscriberCount(publisher=published.info.id, count=0) in wire.notices
