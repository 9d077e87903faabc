"""Which mailboxes a publisher is told to ring, over a real socket pair."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

from ringcast.control.descriptor import Descriptor
from ringcast.control.requests import Subscribe, Unpublish, Unsubscribe, UseMailbox
from ringcast.daemon.rings.fanout import FanOut, Flushed, Mailbox
from ringcast.errors import BadMessage


@pytest.fixture
def lab(node: Any) -> Any:
    node.join(1)
    node.join(2)
    node.open(1, "lab/temp")
    return node


def test_a_mailbox_is_added_before_the_answer_and_removed_after_use(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    assert lab.announcements(publisher) == []
    lab.subscribe(2, "lab/*", 1, lab.memfd())
    ((what, mailbox),) = lab.announcements(publisher)
    assert what == "add"
    assert lab.monitor(publisher).bumps == 1
    lab.ask(2, Unsubscribe(id=1, subscription=1))
    assert lab.announcements(publisher) == [("remove", mailbox)]
    assert lab.monitor(publisher).bumps == 2


def test_a_publisher_born_later_learns_of_mailboxes_at_once(lab: Any) -> None:
    lab.subscribe(2, "lab/*", 1, lab.memfd())
    lab.subscribe(2, "other", 2, lab.memfd())
    publisher = lab.publish(1, "lab/temp")
    assert [what for what, _ in lab.announcements(publisher)] == ["add"]


def test_subscriptions_that_share_a_mailbox_announce_it_once(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    page = lab.memfd()
    lab.subscribe(2, "lab/*", 1, lab.same(page))
    lab.subscribe(2, "**", 2, lab.same(page))
    lab.ask(2, Unsubscribe(id=1, subscription=1))
    assert [what for what, _ in lab.announcements(publisher)] == ["add"]
    lab.ask(2, Unsubscribe(id=1, subscription=2))
    assert [what for what, _ in lab.announcements(publisher)] == ["remove"]


def test_a_mailbox_is_replaced_without_a_gap(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    lab.subscribe(2, "lab/*", 1, lab.memfd())
    ((_, old),) = lab.announcements(publisher)
    lab.ask(2, UseMailbox(id=1, subscription=1), [lab.memfd()])
    added, removed = lab.announcements(publisher)
    assert (added[0], removed) == ("add", ("remove", old))


def test_a_mailbox_may_come_later(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    lab.subscribe(2, "lab/*", 1)
    assert lab.announcements(publisher) == []
    lab.ask(2, UseMailbox(id=1, subscription=1), [lab.memfd()])
    assert [what for what, _ in lab.announcements(publisher)] == ["add"]
    assert lab.answer(2, UseMailbox(id=1, subscription=99), [lab.memfd()]).error == "ClosedError"


def test_a_publisher_that_does_not_read_delays_nobody_and_misses_nothing(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    for number in range(400):
        lab.subscribe(2, "lab/temp", number, lab.memfd())
    ((fanout, outcome),) = lab.local.take_stalled()
    assert outcome is Flushed.FULL
    for number in range(390, 400):  # these two cancel out if both still wait
        lab.ask(2, Unsubscribe(id=1, subscription=number))
    known = {mailbox for _, mailbox in lab.announcements(publisher)}
    bumps = lab.monitor(publisher).bumps
    lab.local.retry(fanout)
    assert lab.monitor(publisher).bumps == bumps + 1
    later = lab.announcements(publisher)
    assert {what for what, _ in later} == {"add"}
    known |= {mailbox for _, mailbox in later}
    assert len(known) == 390


def test_a_full_fanout_can_be_retired(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    for number in range(400):
        lab.ask(2, Subscribe(id=1, pattern="lab/temp", subscription=number, mailbox=True), [lab.memfd()])
    unwatched = []
    for fanout, _ in lab.local.take_stalled():
        fanout.unwatch = lambda: unwatched.append(True)
    lab.ask(1, Unpublish(id=1, publisher=publisher))
    assert unwatched == [True]
    assert lab.local.take_stalled() == []


def test_a_publisher_that_closed_its_end_is_no_obstacle(lab: Any) -> None:
    publisher = lab.publish(1, "lab/temp")
    lab.fanouts[publisher].close()
    lab.subscribe(2, "lab/*", 1, lab.memfd())
    assert lab.local.take_stalled() == []


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_only_a_packet_socket_will_do(kind: str) -> None:
    if kind == "stream":
        ours, theirs = socket.socketpair()
        ours.close()
        descriptor = Descriptor(theirs.detach())
    else:
        descriptor = Descriptor(os.open("/dev/null", os.O_RDONLY))
    with pytest.raises(BadMessage, match="socket"):
        FanOut(descriptor, lambda: None)


def test_a_socket_made_blocking_by_its_maker_still_does_not_block() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    copy = theirs.dup()
    fanout = FanOut(Descriptor(theirs.detach()), lambda: None)
    copy.setblocking(True)
    for number in range(1000):
        fanout.add(Mailbox(number, Descriptor(os.open("/dev/null", os.O_RDONLY))))
    assert fanout.flush() is Flushed.FULL
    fanout.close()
    ours.close()
    copy.close()


def test_a_sealed_link_brings_its_key_and_a_new_key_replaces_one_that_waits() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fanout = FanOut(Descriptor(ours.detach()), lambda: None)
    page = os.memfd_create("page")
    first, second, third = (bytes([i]) * 56 for i in (1, 2, 3))
    with theirs:
        fanout.add_link(5, page, key=1, every=1, chunk=100, first_seq=0, seal=(first, page))
        fanout.rekey_link(5, (second, page))
        assert fanout.flush() is Flushed.ALL
        packet, fds, _, _ = socket.recv_fds(theirs, 200, 4)
        assert (len(packet), packet[:4], packet[40:], len(fds)) == (96, (8).to_bytes(4, "little"), second, 2)
        fanout.rekey_link(5, (third, page))
        fanout.remove_link(5)
        fanout.flush()
        assert len(theirs.recv(200)) == 16
        fanout.rekey_link(6, (third, page))
        fanout.flush()
        packet, more, _, _ = socket.recv_fds(theirs, 200, 4)
        assert (packet[:4], packet[40:], len(more)) == ((9).to_bytes(4, "little"), third, 1)
        for fd in (*fds, *more, page):
            os.close(fd)
    fanout.close()
