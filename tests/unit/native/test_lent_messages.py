"""recv(copy=False): a view into the ring, and knowing when it is not a message any more."""

import gc
from typing import Any

import pytest

from ringcast import _core


def test_view_is_read_only_and_valid_until_overwritten(make_ring: Any) -> None:
    ring = make_ring(depth=4)
    reader = ring.reader()
    ring.send(b"abc")
    message = reader.recv(copy=False)
    assert isinstance(message.data, memoryview)
    assert message.data.readonly
    assert bytes(message.data) == b"abc"
    with pytest.raises(TypeError):
        message.data[0] = 1
    for _ in range(3):
        ring.send(b"x")
        assert message.valid
    ring.send(b"x")
    assert not message.valid


def test_validity_ends_with_the_claim_not_with_the_commit(ring: Any) -> None:
    reader = ring.reader()
    ring.send(b"x" * 2048)
    message = reader.recv_nowait(copy=False)
    reservation = ring.writer.reserve(2048)
    assert message.valid
    reservation.cancel()
    reservation = ring.writer.reserve(2056)
    assert not message.valid
    reservation.cancel()
    assert not message.valid


def test_view_keeps_the_memory_when_all_else_is_gone(make_ring: Any) -> None:
    ring = make_ring()
    reader = ring.reader()
    ring.send(b"still here")
    data = reader.recv(copy=False).data
    reader.close()
    ring.writer.close()
    del ring, reader
    gc.collect()
    assert bytes(data) == b"still here"


def test_decoder_gets_the_view(ring: Any) -> None:
    seen = []
    reader = ring.reader(decode=lambda data: seen.append(type(data)) or bytes(data))
    ring.writer.send_many([b"a", b"b"])
    assert reader.recv(copy=False).data == b"a"
    assert reader.recv().data == b"b"
    assert seen == [memoryview, bytes]


def test_history_lends_too(ring: Any) -> None:
    ring.send(b"abc")
    history = ring.history()
    for message in (history.latest(copy=False), history.at(0, copy=False)):
        assert bytes(message.data) == b"abc"
        assert message.valid
    for _ in range(16):
        ring.send(b"x")
    assert not message.valid


def test_reliable_writer_spares_a_lent_message_until_the_next_is_asked_for(make_ring: Any) -> None:
    ring = make_ring(max_wait_s=0.0, capacity_bytes=4096)
    reader = ring.reader(reliable=True, start=_core.START_NEW)
    ring.send(b"x" * 4096)
    message = reader.recv(copy=False)
    with pytest.raises(Exception, match="nothing was written"):
        ring.send(b"y" * 4096)
    assert message.valid
    assert bytes(message.data[:1]) == b"x"
