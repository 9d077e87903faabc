"""Whatever bytes or text a page sends: a frame, a request, or the one error that says what is wrong."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.errors import BadMessage
from ringcast.gateway import frames, requests
from ringcast.gateway.access import origins
from ringcast.gateway.backlog import Backlog, Entry, Stream

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
OPS = st.sampled_from(
    [
        "hello",
        "beat",
        "tag",
        "publish",
        "unpublish",
        "subscribe",
        "unsubscribe",
        "move",
        "pull",
        "list",
        "watch",
        "unwatch",
    ]
)
FIELDS = st.sampled_from([
    "id", "version", "token", "received", "name", "options", "publisher", "tag", "on_slow", "subscription", "pattern",
    "start", "every", "rate_hz", "size", "what", "arguments", "kinds", "watch", "priority",
])  # fmt: skip


@given(
    st.binary(max_size=200)
    | st.binary(max_size=60).map(lambda rest: b"\x03" + rest)
    | st.binary(min_size=11, max_size=11).map(lambda rest: b"\x05" + rest)
)
@settings(max_examples=200, deadline=None)
def test_any_bytes(frame: bytes) -> None:
    try:
        found = frames.parse_untrusted(frame)
    except BadMessage:
        return
    if isinstance(found, frames.Published):
        assert bytes(found.payload) == frame[24:]
    else:
        assert struct.pack("<BBHII", 5, 0, 0, found.stream, found.number) == frame


@given(st.text(max_size=200) | st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text(text: str | bytes) -> None:
    with contextlib.suppress(requests.Misasked):
        requests.parse_untrusted(text)


@given(OPS, st.dictionaries(FIELDS, JSON, max_size=8))
@settings(max_examples=200, deadline=None)
def test_requests_with_any_values(op: str, fields: dict[str, object]) -> None:
    import json

    with contextlib.suppress(requests.Misasked):
        requests.parse_untrusted(json.dumps({"op": op, **fields}))


@given(st.text(max_size=60), st.none() | st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_host_and_origin(host: str, origin: str | None) -> None:
    said = origins.refusal("http", host, origin, None, None, set())
    assert said is None or isinstance(said, str)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_numbers_of_taken_messages(numbers: list[int]) -> None:
    """A page cannot make a stream's count negative, or free what it does not hold."""
    stream = Stream(1)
    backlog = Backlog(10**6)
    backlog.add(stream)
    for seq, number in enumerate(numbers):
        backlog.push(stream, Entry(0, seq, b"x"), float(seq))
        if (found := backlog.take(float(seq))) is not None:
            stream.note_sent(found[1], float(seq))
        with contextlib.suppress(BadMessage):
            stream.taken(number, float(seq))
        assert 0 <= stream.window.in_flight <= seq + 1
