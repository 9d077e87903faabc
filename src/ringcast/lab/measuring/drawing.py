"""A drawing with axes, as SVG text. Pure: numbers in, a string out; the same numbers give the same string.

Everything that Ringcast draws is drawn here: a plotting library would be fetched by everybody for a handful of charts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from html import escape
from typing import Self

COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4b5563")
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 30, 44
_LETTER, _ROW = 6.2, 16
"""Some width of a letter and the height of a line of the legend."""


class Drawing:
    """`x` and `y` are the ranges that the axes show. With `two_scales` there is room for another y on the right."""

    def __init__(
        self, title: str, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str] = ("", ""),
        width: int = 640, height: int = 360, two_scales: bool = False,
    ) -> None:  # fmt: skip
        self._x, self._y, self._size = _widened(x), _widened(y), (width, height)
        self._right = width - (_LEFT if two_scales else _RIGHT)
        self._title, self._labels = title, labels
        self._parts = [f'<text x="{_LEFT}" y="18" font-size="13" font-weight="600">{escape(title)}</text>']
        self._names: list[tuple[str, str]] = []

    def across(self, x: float) -> float:
        low, high = self._x
        return _LEFT + (x - low) / (high - low) * (self._right - _LEFT)

    def up(self, y: float) -> float:
        low, high = self._y
        return self._size[1] - _BOTTOM - (y - low) / (high - low) * (self._size[1] - _TOP - _BOTTOM)

    def grid(self, x_ticks: Sequence[tuple[float, str]] | None = None) -> None:
        """Axes with their numbers; `x_ticks` gives names instead of numbers, of several lines if need be."""
        right, bottom = self._right, self._size[1] - _BOTTOM
        for value in steps(*self._y):
            at = self.up(value)
            self._parts.append(f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#e5e7eb"/>')
            self._parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(value)}</text>')
        for value, name in x_ticks if x_ticks is not None else [(v, _number(v)) for v in steps(*self._x)]:
            at = self.across(value)
            for row, words in enumerate(name.split("\n")):
                below = bottom + 14 + 12 * row
                self._parts.append(f'<text x="{at:.1f}" y="{below}" text-anchor="middle">{escape(words)}</text>')
        self._parts.append(f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#6b7280"/>')
        x, y = map(escape, self._labels)
        self._parts.append(f'<text x="{right}" y="{bottom + 30}" text-anchor="end" fill="#4b5563">{x}</text>')
        self._parts.append(f'<text x="{_LEFT + 4}" y="{_TOP + 10}" fill="#4b5563">{y}</text>')

    def with_right_scale(self, y: tuple[float, float], label: str) -> Self:
        """The same drawing by another scale of y, which is shown on the right."""
        other = copy(self)
        other._y = _widened(y)
        for value in steps(*other._y):
            at = other.up(value)
            self._parts.append(f'<text x="{self._right + 6}" y="{at + 4:.1f}">{_number(value)}</text>')
        self._parts.append(f'<path d="M{self._right} {_TOP}V{self._size[1] - _BOTTOM}" stroke="#6b7280"/>')
        right = f'<text x="{self._size[0] - 4}" y="{_TOP - 6}" text-anchor="end" fill="#4b5563">{escape(label)}</text>'
        self._parts.append(right)
        return other

    def line(self, points: Sequence[tuple[float, float]], colour: str, name: str = "", dash: str = "") -> None:
        path = "L".join(f"{self.across(x):.1f} {self.up(y):.1f}" for x, y in points)
        if path:
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            self._parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>')
        self._named(name, colour)

    def errors(self, points: Sequence[tuple[float, float]], errors: Sequence[float], colour: str) -> None:
        """A whisker on each point, as far up and down as its error."""
        for (x, y), error in zip(points, errors, strict=True):
            at, high, low = self.across(x), self.up(y + error), self.up(y - error)
            path = f"M{at:.1f} {high:.1f}V{low:.1f}M{at - 3:.1f} {high:.1f}h6M{at - 3:.1f} {low:.1f}h6"
            self._parts.append(f'<path d="{path}" fill="none" stroke="{colour}"/>')

    def dots(self, points: Sequence[tuple[float, float]], colour: str, name: str = "") -> None:
        for x, y in points:
            self._parts.append(f'<circle cx="{self.across(x):.1f}" cy="{self.up(y):.1f}" r="3" fill="{colour}"/>')
        self._named(name, colour)

    def bar(
        self, x: float, width: float, y: float, colour: str, name: str = "", opacity: float = 1, shown: bool = True
    ) -> None:
        """With its number above it, if `shown`."""
        left, right, top, bottom = self.across(x), self.across(x + width), self.up(y), self.up(max(0.0, self._y[0]))
        self._parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{max(0.0, bottom - top):.1f}" '
            f'fill="{colour}" fill-opacity="{opacity}"><title>{escape(name)} {_number(y)}</title></rect>'
        )
        if shown:
            self._parts.append(
                f'<text x="{(left + right) / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{_number(y)}</text>'
            )
        self._named(name, colour)

    def box(self, low: tuple[float, float], high: tuple[float, float], colour: str) -> None:
        x, y = self.across(low[0]), self.up(high[1])
        wide, tall = self.across(high[0]) - x, self.up(low[1]) - y
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}"/>')

    def text(self, x: float, y: float, words: str) -> None:
        self._parts.append(f'<text x="{self.across(x) + 6:.1f}" y="{self.up(y) + 4:.1f}">{escape(words)}</text>')

    def svg(self) -> str:
        """The whole of it, with a legend below, in as many lines as it takes."""
        at, row, legend = float(_LEFT), 0, []
        width, height = self._size
        for name, colour in self._names:
            wide = 28 + _LETTER * len(name)
            if at > _LEFT and at + wide > width:
                at, row = float(_LEFT), row + 1
            y = height - 8 + row * _ROW
            legend.append(f'<rect x="{at:.1f}" y="{y - 8}" width="9" height="9" fill="{colour}"/>')
            legend.append(f'<text x="{at + 13:.1f}" y="{y}">{escape(name)}</text>')
            at += wide
        height += row * _ROW
        frame = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {frame} role="img" aria-label="{escape(self._title)}">'
        return "".join(
            [head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *self._parts, *legend, "</svg>"]
        )

    def _named(self, name: str, colour: str) -> None:
        if name and (name, colour) not in self._names:
            self._names.append((name, colour))


def steps(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between, some six of them."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _widened(span: tuple[float, float]) -> tuple[float, float]:
    low, high = span
    # Between numbers that differ by very little there are no round numbers.
    least = max(abs(low), abs(high)) * 1e-9 + 1e-300
    return (low, high) if high - low > least else (low - max(0.5, least), low + max(0.5, least))


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e5 else f"{value:.2e}"
