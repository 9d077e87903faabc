"""Schemas become column types, and payloads that do not fit become null."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from ringcast.codec.schema import describe as describe_type
from ringcast.spark.tags.values import arrow_type, decoded, describe


class Fix(msgspec.Struct):
    lat: float
    sats: int
    name: str | None
    tags: list[str]
    extra: dict[str, float]
    inner: list[tuple[int, int]]


def test_types() -> None:
    kind = arrow_type(describe_type(Fix))
    assert kind is not None
    assert {kind.field(i).name: str(kind.field(i).type) for i in range(kind.num_fields)} == {
        "lat": "double", "sats": "int64", "name": "string", "tags": "list<item: string>",
        "extra": "map<string, double>",
    }  # fmt: skip


@pytest.mark.parametrize("description", [None, {}, {"type": "null"}, {"type": "object", "properties": {}}])
def test_no_counterpart(description: object) -> None:
    assert arrow_type(description) is None


def test_what_does_not_fit_is_null() -> None:
    kind = pa.struct([("x", pa.float64()), ("s", pa.string())])
    payloads = pa.array([b'{"x":1,"s":"a","more":[]}', b"{", b'{"x":"no"}', b"[]", b'{"s":"b"}'])
    found = decoded(payloads, pa.array(["json"] * 5), kind).to_pylist()
    assert found == [{"x": 1.0, "s": "a"}, None, None, None, {"x": None, "s": "b"}]


def test_codecs_side_by_side() -> None:
    payloads = pa.array([b'{"x":1}', msgspec.msgpack.encode({"x": 2.5}), b"\x00"])
    found = decoded(payloads, pa.array(["json", "msgpack", "bytes"]), pa.struct([("x", pa.float64())])).to_pylist()
    assert found == [{"x": 1.0}, {"x": 2.5}, None]


def test_there_and_back() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64())), ("c", pa.map_(pa.string(), pa.bool_()))])
    assert arrow_type(describe(kind)) == kind
    with pytest.raises(TypeError, match="cast it first"):
        describe(pa.struct([("a", pa.null())]))


def test_telemetry_is_a_table() -> None:
    from ringcast.control.status import ChannelEnvironment, ChannelStatus
    from ringcast.daemon.table.system_tags import ATTRIBUTES, encode, encode_channel

    kind = arrow_type(ATTRIBUTES.schema)
    assert kind is not None
    row = ChannelStatus(
        direction="in", node="b", tag="x", incarnation=2**64 - 1, transport="udp", every=1, reliable=False, messages=5,
        bytes=None, lost=0, counters={"late": 2}, environment=ChannelEnvironment(
            seconds=10.0, receivers=3, loss_percent=5.0, burst=None, rate_hz=100.0, payload_bytes=64.0,
            round_trip_us=None, bandwidth_left_mbit=None, cpu_left_percent=50.0,
        ),
    )  # fmt: skip
    payload = encode("a", 7, [encode_channel(row)], {"udp": {"unknown": 3}})
    (found,) = decoded(pa.array([payload]), pa.array(["json"]), kind).to_pylist()
    (channel,) = found["channels"]
    assert (found["node"], found["taken_ns"], found["dropped"]) == ("a", 7, [("udp", [("unknown", 3)])])
    assert (channel["incarnation"], channel["messages"], channel["bytes"]) == ("f" * 16, 5, None)
    assert channel["counters"] == [("late", 2)]
    assert (channel["environment"]["loss_percent"], channel["environment"]["burst"]) == (5.0, None)
