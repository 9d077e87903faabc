"""Whatever bytes arrive on a control socket, decoding them gives a message or BadMessage."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.control import answers, notices, requests
from ringcast.control.framing import decode_reply_untrusted, decode_request_untrusted, encode
from ringcast.control.service import Pull
from ringcast.errors import BadMessage
from ringcast.model.identity import Presence

KINDS = [
    "hello", "open", "destroy", "publish", "unpublish", "subscribe", "mailbox", "unsubscribe", "list_tags",
    "list_publishers", "list_subscribers", "status", "bye", "welcome", "opened", "published", "done", "tags",
    "publishers", "subscribers", "daemon", "refused", "ring_up", "ring_down", "tag_gone", "subscriber_count",
    "list_histories", "pull", "pulled", "watch", "unwatch", "presences",
    "stage_up", "stage_down", "stage_wanted", "stage_unwanted", "ring_paced",
]  # fmt: skip
FIELDS = [
    "id", "version", "program", "name", "requested", "create", "force", "tag", "incarnation", "depth",
    "capacity_bytes", "publisher", "pattern", "subscription", "role", "reliable", "mailbox", "counter_index",
    "local", "info", "attributes", "rows", "more", "error", "fields", "count", "node", "born_after",
    "at", "query", "size", "answer", "watch", "kinds", "anew",
    "stage", "reason", "rate_hz", "every", "first_seq", "ring", "pace",
]  # fmt: skip

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20)
    | st.binary(max_size=20) | st.datetimes().map(lambda moment: moment.replace(tzinfo=None))
    | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=8))
)  # fmt: skip
keys = st.text(max_size=8) | st.integers(0, 9)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
plausible = st.fixed_dictionaries({"t": st.sampled_from(KINDS) | values}, optional=dict.fromkeys(FIELDS, values)).map(
    msgspec.msgpack.encode
)

GOOD = [
    encode(requests.OpenTag(id=1, name="lab/temp", requested={"depth": 16, "schema": {"type": "object"}})),
    encode(requests.Publish(id=1, tag="lab/temp", incarnation=2**64 - 1, depth=16, capacity_bytes=4096)),
    encode(requests.Subscribe(id=1, pattern="lab/*", subscription=1)),
    encode(requests.PullHistory(id=1, at="node:n2", query=Pull(tag="lab/temp", kind="range", first=1, last=2**64 - 1))),
    encode(requests.Watch(id=1, watch=2, kinds=["node", "publisher"], pattern="lab/**")),
    encode(notices.Presences(watch=2, rows=[Presence(kind="node", came=True, node="n1")], anew=True)),
    encode(answers.HistoryPulled(id=1, size=3, answer=b"abc")),
    encode(answers.Refused(id=1, error="UnknownTag", fields={"name": "lab"})),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    packet = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 4))):
        packet[draw(st.integers(0, len(packet) - 1))] = draw(st.integers(0, 255))
    return bytes(packet[: draw(st.integers(0, len(packet)))]) if draw(st.booleans()) else bytes(packet)


def check(packet: bytes) -> None:
    for decode in (decode_request_untrusted, decode_reply_untrusted):
        message: Any
        try:
            message = decode(packet)
        except BadMessage:
            continue
        assert isinstance(message, msgspec.Struct)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
def test_noise(packet: bytes) -> None:
    check(packet)


@settings(max_examples=400, deadline=None)
@given(plausible)
def test_plausible_maps(packet: bytes) -> None:
    check(packet)


@settings(max_examples=400, deadline=None)
@given(damaged())
def test_good_messages_damaged(packet: bytes) -> None:
    check(packet)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60_000), st.sampled_from([b"\x91", b"\x81\xa1t", b"\x81\xa9requested", b"\xdc\xff\xff"]))
def test_deep_nesting(depth: int, opening: bytes) -> None:
    check((opening * depth)[:60_000])
    check(b"\x83\xa1t\xa4open\xa2id\x01\xa9requested" + (opening * depth)[:60_000])
