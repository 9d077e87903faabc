"""The view of `ringcast channels --watch`: it fits a hundred columns and stands still."""

from __future__ import annotations

import math

import msgspec
import pytest
from rich.console import Console

from ringcast.cli.parts.gauges import WIDTH, Gauges, records, sheets
from ringcast.cli.parts.output import drawn, plain
from ringcast.control.status import ChannelStatus
from ringcast.measure.channel import Reading


def row(tag: str = "lab/x", *, messages: int | None = 10, lost: int = 0, **fields: object) -> ChannelStatus:
    counters = {
        "delay_base_ns": 200_000, "delay_sum_ns": 0, "delay_square_us2": 0, "jitter_sum_ns": 0, "wire_bytes": 2_000
    }  # fmt: skip
    known = {
        "direction": "in", "node": "a", "tag": tag, "incarnation": 1, "transport": "nak", "every": 1,
        "reliable": False, "messages": messages, "bytes": 1_000, "lost": lost, "counters": counters,
    }  # fmt: skip
    return ChannelStatus(**{**known, **fields})  # type: ignore[arg-type]


EXTREMES = [
    Reading(),
    Reading(**{name: math.inf if name.startswith("relate") else 0.0 for name in Reading.__struct_fields__}),
    Reading(**dict.fromkeys(Reading.__struct_fields__, 1e-07)),
    Reading(**dict.fromkeys(Reading.__struct_fields__, 0.99999)),
    Reading(**{name: 1023.9 for name in Reading.__struct_fields__ if name != "loss"}),
    Reading(latency_s=-3_600.0, jitter_s=7_200.0, relate=1e7, relate2=1e9, relate2_net=1e15, relate2_jit=1e15),
    Reading(hz=999_994.0, bandwidth=1023.94 * 2**20, loss=1.0, overhead=123_456.0, latency_s=0.99999, relate=99.94),
]


@pytest.mark.parametrize("reading", EXTREMES)
def test_columns_are_as_wide_whatever_they_hold(reading: Reading) -> None:
    long = row("a/very/long/tag/that/somebody/gave", node="node-with-a-long-name", transport="multicast+lateral+nak")
    for calm, wild in zip(sheets([row()], [Reading()]), sheets([long], [reading]), strict=True):
        heads, line = plain(wild[1], wild[2]).splitlines()
        assert plain(calm[1], calm[2]).splitlines()[0] == heads
        assert len(line) <= len(heads) <= WIDTH
        assert [len(cell) for cell in wild[2][0]] == [len(head) for head in wild[1]]
        console = Console(width=2 * WIDTH)
        with console.capture() as drawing:
            console.print(drawn(wild[1], wild[2]))
        assert max(map(len, drawing.get().splitlines())) <= WIDTH


def test_what_flows_and_how_well() -> None:
    gauges = Gauges()
    gauges.look([row()], 1.0)
    later = row(messages=20, lost=10, bytes=3_000)
    (reading,) = gauges.look([later], 2.0)
    assert (reading.hz, reading.loss) == (10.0, 0.5)
    flow, scores = (plain(heads, cells) for _, heads, cells in sheets([later], [reading]))
    for word in ("lab/x", "< a", "nak", "10.00 Hz", "2.0 KiB/s", "50.00 %"):
        assert word in flow
    # Half of them lost: twice the latency, and 51 times.
    for word in ("200.0us", "400.0us", "10.20ms"):
        assert word in scores


def test_channels_are_told_apart_and_forgotten() -> None:
    gauges = Gauges()
    gauges.look([row("x"), row("y", messages=100)], 1.0)
    x, y = gauges.look([row("x", messages=11), row("y", messages=105)], 2.0)
    assert (x.hz, y.hz) == (1.0, 5.0)
    gauges.look([row("x", messages=12)], 3.0)
    assert gauges.look([row("y", messages=200)], 4.0)[0].hz is None


def test_an_end_that_counts_nothing_says_nothing() -> None:
    mine = row(messages=None, bytes=None, lost=None, direction="out")
    (reading,) = Gauges().look([mine], 1.0)
    assert reading == Reading()
    assert "> a" in plain(*sheets([mine], [reading])[0][1:])


def test_json_has_every_measure() -> None:
    (record,) = msgspec.json.decode(msgspec.json.encode(records([row()], [Reading(relate=math.inf, hz=2.0)])))
    assert record["tag"] == "lab/x"
    assert (record["measured"]["hz"], record["measured"]["relate"]) == (2.0, None)
    assert {"relate2", "relate2_jit", "relate2_net", "relate2_burst", "overhead", "jitter_s"} <= set(record["measured"])
