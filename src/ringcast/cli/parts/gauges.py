"""What `ringcast channels` says of each channel besides its counters: `measure/channel.py`, as columns and as JSON.

Columns always have the same width, so that a view that is drawn again stands still. Each sheet fits a hundred columns.
Pure, except that it remembers the last looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from ringcast.cli.parts.units import show_bytes, show_hz, show_ns
from ringcast.measure.channel import Counts, Gauge, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from ringcast.cli.parts.watching import Sheet
    from ringcast.control.status import ChannelStatus

WIDTH = 100
LONG_S = 99.9
"""Minutes and hours would need two numbers; clocks that are so far apart are no latency."""
_TAG, _WAY, _TRANSPORT = 13, 8, 20
_FLOW: tuple[tuple[str, int, Callable[[Reading], str]], ...] = (
    ("rate", 11, lambda r: show_hz(r.hz)),
    ("bandwidth", 12, lambda r: "-" if r.bandwidth is None else show_bytes(r.bandwidth) + "/s"),
    ("loss", 8, lambda r: "-" if r.loss is None else f"{100 * r.loss:.2f} %"),
    ("overhead", 8, lambda r: _plain(r.overhead, 1)),
)
_SCORES: tuple[tuple[str, int, Callable[[Reading], str]], ...] = (
    ("latency", 8, lambda r: _time(r.latency_s)),
    ("jitter", 8, lambda r: _time(r.jitter_s)),
    ("ReLate", 8, lambda r: _time(r.relate)),
    ("ReLate2", 8, lambda r: _time(r.relate2)),
    ("2Jit", 7, lambda r: _plain(r.relate2_jit, 1e12)),
    ("2Net", 7, lambda r: _plain(r.relate2_net, 1)),
    ("2Burst", 7, lambda r: _plain(r.relate2_burst, 1)),
)


class Gauges:
    """One for each channel that was seen at the last look."""

    def __init__(self) -> None:
        self._gauges: dict[tuple[Any, ...], Gauge] = {}

    def look(self, rows: list[ChannelStatus], time_s: float) -> list[Reading]:
        """A reading for each row, in their order. Channels that are not among them are forgotten."""
        kept = {_key(row): self._gauges.get(_key(row)) or Gauge() for row in rows}
        self._gauges = kept
        return [kept[_key(row)].add(_counts(row, time_s)) if row.messages is not None else Reading() for row in rows]


def sheets(rows: list[ChannelStatus], readings: list[Reading]) -> list[Sheet]:
    """What flows, and how well."""
    pairs = sorted(zip(rows, readings, strict=True), key=lambda pair: order(pair[0]))
    flow = [
        [_cut(row.tag, _TAG), _way(row), _cut(carrier(row), _TRANSPORT), *_cells(_FLOW, reading)]
        for row, reading in pairs
    ]
    scores = [[_cut(row.tag, _TAG), _way(row), *_cells(_SCORES, reading)] for row, reading in pairs]
    named = ("tag".ljust(_TAG), "way".ljust(_WAY))
    return [
        ("", (*named, "transport".ljust(_TRANSPORT), *_heads(_FLOW)), flow),
        ("", (*named, *_heads(_SCORES)), scores),
    ]


def records(rows: list[ChannelStatus], readings: list[Reading]) -> list[dict[str, Any]]:
    """Each channel with what was measured of it; None where there is nothing to say, and for what is infinite."""
    return [{**msgspec.structs.asdict(row), "measured": reading} for row, reading in zip(rows, readings, strict=True)]


def carrier(row: ChannelStatus) -> str:
    return f"{row.transport} (unicast)" if row.counters.get("fallen_back") else row.transport


def order(row: ChannelStatus) -> tuple[Any, ...]:
    return row.tag, row.direction, row.node, row.every, row.size or ()


def _counts(row: ChannelStatus, time_s: float) -> Counts:
    return Counts(
        time_s=time_s, messages=row.messages or 0, bytes=row.bytes or 0, lost=row.lost or 0, counters=row.counters
    )


def _key(row: ChannelStatus) -> tuple[Any, ...]:
    return row.direction, row.node, row.tag, row.incarnation, row.every, row.size, row.reliable


def _way(row: ChannelStatus) -> str:
    return _cut(f"{'<' if row.direction == 'in' else '>'} {row.node}", _WAY)


def _cells(columns: tuple[tuple[str, int, Callable[[Reading], str]], ...], reading: Reading) -> list[str]:
    return [show(reading).rjust(width) for _, width, show in columns]


def _heads(columns: tuple[tuple[str, int, Callable[[Reading], str]], ...]) -> list[str]:
    return [head.rjust(width) for head, width, _ in columns]


def _cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "~"


def _time(seconds: float | None) -> str:
    if seconds is None or abs(seconds) == math.inf:
        return "-" if seconds is None else "inf"
    return show_ns(seconds * 1e9).replace(" ", "") if abs(seconds) < LONG_S else f"{_short(seconds)}s"


def _plain(value: float | None, factor: float) -> str:
    """Three digits, in few characters."""
    if value is None:
        return "-"
    shown = value * factor
    return f"{shown:.2f}" if 0.1 <= shown < 1000 else _short(shown)


def _short(value: float) -> str:
    return f"{value:.3g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
