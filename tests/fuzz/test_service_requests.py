"""Whatever payload one daemon asks another with, decoding it gives what was meant or BadMessage."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.control import service
from ringcast.errors import BadMessage

GOOD: list[Any] = [
    service.OpenChannel(incarnation=1, every=2, start="latest"),
    service.ChannelOpened(first_seq=4, depth=8, capacity_bytes=4096),
    service.StartChannel(key=1, incarnation=2, first_seq=3, address=":7", every=2, reliable=True),
    service.CloseChannel(key=2**62),
    service.DestroyTag(name="lab/temp", rights=[1, 2], force=True),
    service.Pull(tag="lab/temp", kind="range", first=1, last=2**64 - 1),
    service.PullAnswer(messages=[service.Pulled(1, 2, 3, 4, False, 0, b"x")], bounds=[service.Bounds(1, 0, -1)]),
]
KINDS = [type(request) for request in GOOD]
FIELDS = sorted({field for kind in KINDS for field in kind.__struct_fields__})

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20)
    | st.binary(max_size=20) | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=8))
)  # fmt: skip
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
plausible = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, values)).map(msgspec.msgpack.encode)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    payload = bytearray(service.encode(draw(st.sampled_from(GOOD))))
    for _ in range(draw(st.integers(1, 4))):
        payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    return bytes(payload[: draw(st.integers(0, len(payload)))]) if draw(st.booleans()) else bytes(payload)


@given(st.binary(max_size=200) | plausible | damaged(), st.sampled_from(KINDS))
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])  # a machine that does other things
def test_decoding_gives_what_was_meant_or_says_it_is_bad(payload: bytes, kind: type[Any]) -> None:
    try:
        found = service.decode_untrusted(payload, kind)
    except BadMessage:
        return
    assert isinstance(found, kind)
    assert service.decode_untrusted(service.encode(found), kind) == found or "nan" in repr(found)


@pytest.mark.parametrize("request_", GOOD, ids=lambda request: type(request).__name__)
def test_what_is_encoded_is_decoded(request_: Any) -> None:
    assert service.decode_untrusted(service.encode(request_), type(request_)) == request_


@pytest.mark.parametrize(
    "bad",
    [
        {"incarnation": 1, "every": 0},
        {"incarnation": -1},
        {"incarnation": 1, "transport": "x" * 256},
        {"incarnation": 1, "start": "never"},
    ],
)
def test_limits_are_kept(bad: dict[str, Any]) -> None:
    with pytest.raises(BadMessage):
        service.decode_untrusted(msgspec.msgpack.encode(bad), service.OpenChannel)
