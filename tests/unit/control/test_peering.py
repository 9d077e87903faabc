"""Every message between daemons survives the way there, whole or in pieces; nothing leaves its bounds."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from ringcast.control import peering as p
from ringcast.errors import BadMessage

RECORD = p.NodeRecord("n1", 2**64 - 1, 3, 2**61, ("10.0.0.1:7417", "[fd00::1]:7417"), ("10.0.0.1:7419",), True)
MESSAGES: list[Any] = [
    p.Hello(record=RECORD, mesh="lab", age_ns=5, roster=2**64 - 1),
    p.Refusal(reason="no"),
    p.Ping(seq=1, roster=2**64 - 1),
    p.Ack(seq=1),
    p.PingFor(seq=1, target=2**64 - 1),
    p.Rumours(rumours=[p.Rumour(RECORD, 2)]),
    p.RosterSummary(sums=[0, 2**64 - 1]),
    p.RosterDigest(buckets=[1], ranks={2**64 - 1: 7}, answer=True),
    p.TableSummary(sums=[1]),
    p.TableDigest(buckets=[1], versions={"n1": (2**61, 9)}, answer=True),
    p.TableDelta(page=b"\x90"),
    p.Call(id=1, service="channel.open", size=3, piece=b"abc"),
    p.Reply(id=1, size=p.MAX_PAYLOAD_BYTES, piece=bytes(p.CHUNK_BYTES)),
    p.Chunk(id=1, reply=True, piece=b"x"),
    p.Failure(id=1, error="UnknownTag", fields={"name": "lab"}),
    p.Cancel(id=1),
]


def body_of(message: Any) -> bytes:
    return p.encode_frame(message)[p.LENGTH_BYTES :]


def test_there_is_an_example_of_every_message() -> None:
    assert {type(message) for message in MESSAGES} == set(get_args(p.PeerMessage))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_survive(message: Any) -> None:
    assert p.decode_untrusted(body_of(message)) == message


def test_frames_are_found_however_the_stream_is_cut() -> None:
    stream = b"".join(p.encode_frame(message) for message in MESSAGES)
    for step in (7, 1000, len(stream)):
        reader = p.FrameReader(p.MAX_FRAME_BYTES)
        found = []
        for at in range(0, len(stream), step):
            reader.feed(stream[at : at + step])
            while (body := reader.next_body()) is not None:
                found.append(p.decode_untrusted(body))
        assert found == MESSAGES


def test_a_frame_larger_than_allowed_is_refused_before_it_arrives() -> None:
    reader = p.FrameReader()
    reader.feed((p.MAX_HELLO_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(BadMessage, match="allowed"):
        reader.next_body()


def test_a_message_larger_than_a_frame_does_not_leave() -> None:
    with pytest.raises(BadMessage, match="one frame"):
        p.encode_frame(p.TableDelta(page=bytes(p.MAX_FRAME_BYTES)))


def test_hello_is_first() -> None:
    assert p.decode_hello_untrusted(body_of(MESSAGES[0])) == MESSAGES[0]
    with pytest.raises(BadMessage):
        p.decode_hello_untrusted(body_of(p.Ping(seq=1)))


def test_a_newer_hello_is_refused_by_its_version_whatever_else_it_says() -> None:
    newer = msgspec.msgpack.encode(
        {"t": "hello", "version": p.PROTOCOL_VERSION + 1, "record": "something else", "more": [1]}
    )
    with pytest.raises(BadMessage, match="speaks peering protocol 2 and the other 3"):
        p.decode_hello_untrusted(newer)


@pytest.mark.parametrize(
    "record",
    [
        p.NodeRecord("", 1), p.NodeRecord("a b", 1), p.NodeRecord("x" * 65, 1), p.NodeRecord("n\n", 1),
        p.NodeRecord("n", 0), p.NodeRecord("n", 1, -1), p.NodeRecord("n", 1, 2**54), p.NodeRecord("n", 1, 0, 2**63),
        p.NodeRecord("n", 1, 0, 0, ("a:1",) * 9), p.NodeRecord("n", 1, 0, 0, ("a" * 129,)),
        p.NodeRecord("n", 1, 0, 0, ("a b:1",)), p.NodeRecord("n", 1, 0, 0, ("a:1\n",)),
    ],
    ids=repr,
)  # fmt: skip
def test_records_are_bounded(record: p.NodeRecord) -> None:
    with pytest.raises(BadMessage):
        p.decode_untrusted(body_of(p.Rumours(rumours=[p.Rumour(record)])))


def test_scouts() -> None:
    scout = p.Scout(incarnation=2**64 - 1, port=7417, mesh="lab", host="127.0.0.2")
    assert p.decode_scout_untrusted(p.encode_scout(scout)) == scout
    for datagram in (
        b"",
        b"\x00" * 1000,
        p.encode_scout(scout)[:-1],
        msgspec.msgpack.encode({"t": "scout", "port": 0}),
    ):
        with pytest.raises(BadMessage):
            p.decode_scout_untrusted(datagram)
