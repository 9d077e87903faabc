"""Receiving ends: shared by usual channels, one of its own for each that is received apart."""

from __future__ import annotations

import pytest

from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.transport.interface import Channel


@pytest.fixture
def ends():
    made = ReceivingEnds("127.0.0.1")
    yield made
    made.close()


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_urgent_channels_share_neither_socket_nor_thread(ends, transport):
    shared = ends.end_for(transport, "")
    assert ends.end_for(transport, "low") is shared
    own, other = ends.end_for(transport, "high"), ends.end_for(transport, "high")
    assert len({end.port for end in (shared, own, other)}) == 3
    assert len({end.in_force().thread for end in (shared, own, other)}) == 3
    assert own.in_force().dscp == "AF42"
    assert own.in_force().own
    assert not shared.in_force().own


def test_an_own_end_goes_with_its_channel_and_what_it_dropped_stays_counted(ends, eventually):
    own = ends.end_for("udp", "high")
    mirror = own.open(Channel(key=7, incarnation=1, depth=8, capacity_bytes=4096, first_seq=0, priority="high"))
    own.close_channel(7)
    ends.release(own)
    eventually(lambda: mirror.closed)
    eventually(lambda: own.in_force().dscp == "")  # its socket is closed
    assert ends.dropped()["udp"]["stranger"] == 0
    ends.release(own)  # a second time nothing happens


def test_the_shared_end_stays(ends):
    shared = ends.end("udp")
    ends.release(shared)
    assert ends.end("udp") is shared
    assert shared.in_force().dscp == "CS0"
