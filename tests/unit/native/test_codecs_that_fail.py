"""Encoders and decoders are the application's: whatever they do, the ring goes on."""

import gc
from typing import Any

import pytest

from ringcast.errors import BusyError, ClosedError, RingcastError, SlowSubscriber


def test_encoder_turns_values_into_buffers(make_ring: Any) -> None:
    ring = make_ring(encode=lambda text: (b"len=", str(len(text)).encode()))
    reader = ring.reader()
    ring.send("four")
    ring.writer.send_many(["a", "bb"])
    assert [m.data for m in reader.recv_many(9)] == [b"len=4", b"len=1", b"len=2"]


def test_encoder_that_raises_writes_nothing(make_ring: Any) -> None:
    ring = make_ring(encode=lambda value: 1 // value)
    with pytest.raises(ZeroDivisionError):
        ring.send(0)
    with pytest.raises(TypeError, match="codec"):
        ring.send(1)  # 1 is not a buffer
    assert ring.writer.next_seq == 0


def test_batch_up_to_the_value_that_cannot_be_encoded(make_ring: Any) -> None:
    ring = make_ring(encode=lambda value: bytes([value]))
    reader = ring.reader()
    with pytest.raises(ValueError, match="range"):
        ring.writer.send_many([1, 2, 300, 4])
    with pytest.raises(ValueError, match="range"):
        ring.writer.send_many([300])
    assert [m.data for m in reader.recv_many(9)] == [b"\1", b"\2"]


def test_encoder_that_changes_the_list_it_encodes(make_ring: Any) -> None:
    items = [b"a", b"b", b"c", b"d"]

    def encode(value: bytes) -> bytes:
        items.clear()
        return value

    ring = make_ring(encode=encode)
    reader = ring.reader()
    ring.writer.send_many(items)
    assert [m.data for m in reader.recv_many(9)] == [b"a"]


def test_encoder_that_sends_on_its_own_publisher(make_ring: Any) -> None:
    nested: list[bytes] = []

    def encode(value: bytes) -> bytes:
        if not nested:
            nested.append(value)
            ring.send(b"inner")
        return value

    ring = make_ring(encode=encode)
    reader = ring.reader()
    ring.writer.send_many([b"a", b"b"])
    nested.clear()
    ring.send(b"c")
    assert [m.data for m in reader.recv_many(9)] == [b"inner", b"a", b"b", b"inner", b"c"]


def test_encoder_that_closes_its_own_publisher(make_ring: Any) -> None:
    ring = make_ring(encode=lambda value: ring.writer.close() or value)
    with pytest.raises(ClosedError):
        ring.send(b"x")


class Finalized:
    """Garbage in a cycle: its finalizer runs whenever the collector does, wherever that is."""

    def __init__(self, last_words: Any) -> None:
        self.me, self.last_words = self, last_words

    def __del__(self) -> None:
        self.last_words()


def test_finalizer_that_sends_in_the_middle_of_a_send_gets_an_error_and_no_deadlock(make_ring: Any) -> None:
    outcomes: list[str] = []

    def last_words() -> None:
        try:
            ring.send(b"inner")
        except RingcastError as error:
            outcomes.append(str(error))

    def encode(value: bytes) -> bytes:
        if value == b"y":
            gc.enable()  # the next allocation collects, and that is the error's, in the middle of the send
        return value

    ring = make_ring(depth=1, max_wait_s=0.0, encode=encode)
    reader = ring.reader(reliable=True)
    ring.send(b"x")
    thresholds = gc.get_threshold()
    gc.disable()
    try:
        gc.set_threshold(1, 1, 1)
        Finalized(last_words)
        with pytest.raises(SlowSubscriber):
            ring.send(b"y")
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    assert len(outcomes) == 1
    assert "in the middle of a send" in outcomes[0]
    reader.close()


def test_decoder_that_raises_costs_one_message(ring: Any) -> None:
    reader = ring.reader(decode=lambda data: 1 // int(data))
    for data in (b"0", b"1", b"0", b"1"):
        ring.send(data)
    with pytest.raises(ZeroDivisionError):
        reader.recv()
    assert reader.recv().data == 1
    with pytest.raises(ZeroDivisionError):
        reader.recv_nowait()
    assert reader.recv_many(5)[0].seq == 3
    assert reader.counters()["received"] == 4


def test_batch_before_a_message_that_cannot_be_decoded_is_not_lost(ring: Any) -> None:
    reader = ring.reader(decode=lambda data: 1 // int(data))
    for data in (b"1", b"1", b"0", b"1"):
        ring.send(data)
    assert [m.seq for m in reader.recv_many(10)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        reader.recv_many(10)
    assert [m.seq for m in reader.recv_many(10)] == [3]


def test_postponed_error_is_raised_once_by_whichever_receive_comes(ring: Any) -> None:
    for receive in ("recv", "recv_nowait"):
        reader = ring.reader(decode=lambda data: 1 // int(data))
        for data in (b"1", b"0", b"1"):
            ring.send(data)
        assert len(reader.recv_many(10)) == 1
        with pytest.raises(ZeroDivisionError):
            getattr(reader, receive)()
        assert getattr(reader, receive)().data == 1


def test_decoder_that_receives_on_its_own_reader(ring: Any) -> None:
    reader = ring.reader(decode=lambda data: reader.recv_nowait())
    ring.writer.send_many([b"a", b"b"])
    with pytest.raises(BusyError):
        reader.recv()


def test_decoder_that_closes_or_detaches_its_own_reader(ring: Any) -> None:
    reader = ring.reader(decode=lambda data: reader.detach(ring.writer.incarnation, drain=False))
    ring.writer.send_many([b"a", b"b"])
    assert reader.recv().data is True
    with pytest.raises(TimeoutError):
        reader.recv(timeout=0)
    reader = ring.reader(decode=lambda data: reader.close())
    ring.writer.send_many([b"a", b"b"])
    assert reader.recv().data is None
    with pytest.raises(ClosedError):
        reader.recv()


class Decoder:
    """Looks at its reader when it goes, as a finalizer may."""

    reader: Any = None
    looked = 0

    def __call__(self, data: bytes) -> bytes:
        return data

    def __del__(self) -> None:
        type(self).looked += 1
        self.reader.counters()
        self.attached = self.reader.incarnations


@pytest.mark.parametrize("way", ["detach", "close", "drain", "collect"])
def test_what_a_decoder_does_when_it_goes_does_not_deadlock(ring: Any, way: str) -> None:
    looked = Decoder.looked
    decoder = Decoder()
    reader = ring.reader(decode=decoder)
    decoder.reader = reader
    del decoder
    ring.send(b"x")
    assert reader.recv().data == b"x"
    incarnation = ring.writer.incarnation
    if way == "detach":
        reader.detach(incarnation, drain=False)
    elif way == "drain":
        reader.detach(incarnation)
    elif way == "close":
        reader.close()
    if way in ("detach", "drain"):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                reader.recv(timeout=0)
    del reader
    gc.collect()
    assert Decoder.looked == looked + 1
