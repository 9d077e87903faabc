"""Where the time goes: a bar for everyone who was judged, its parts in order, as SVG and as text. Pure.

Every bar has its own scale: it ends at the bound or the limit, whichever is later. The darker part of a piece is its
own time, the lighter one is waiting for others; the line is the limit. The same verdict gives the same bytes.
"""

from __future__ import annotations

import math
from html import escape

from ringcast.admission.verdict import Judged, Part, Verdict

_COLOURS = {
    "publish": "#2563eb", "send": "#0891b2", "link": "#d97706", "recovery": "#dc2626", "receive": "#16a34a",
    "proxy": "#7c3aed", "deliver": "#be185d", "compute": "#4b5563", "pull": "#65a30d", "ask": "#0d9488",
    "next message": "#9ca3af", "late start": "#6b7280",
}  # fmt: skip
_LETTERS = {
    "publish": "P", "send": "S", "link": "=", "recovery": "R", "receive": "r", "proxy": "x", "deliver": "D",
    "compute": "C", "pull": "p", "ask": "a", "next message": "-", "late start": "j",
}  # fmt: skip
_LEFT, _RIGHT, _ROW, _BAR, _TOP = 210, 90, 34, 16, 46
_WIDTH = 900


def svg(verdict: Verdict, title: str = "") -> str:
    rows = verdict.judged
    height = _TOP + _ROW * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        "<style>text{font:12px sans-serif}</style>",
        f'<text x="12" y="20" font-weight="bold">{escape(title)}</text>' if title else "",
        *_legend(verdict),
    ]
    for i, one in enumerate(rows):
        parts += _bar(one, _TOP + 14 + i * _ROW, (_WIDTH - _LEFT - _RIGHT) / _longest(one))
    return "\n".join(part for part in [*parts, "</svg>\n"] if part)


def text(verdict: Verdict, width: int = 60) -> list[str]:
    """A line of letters for each; `|` is the limit. Underneath, what the letters mean."""
    names = max((len(one.who) for one in verdict.judged), default=0)
    lines = []
    for one in verdict.judged:
        bar, at, longest = "", 0.0, _longest(one)
        for part in one.parts:
            at += part.worst_s
            if math.isinf(at):
                bar = bar.ljust(width, _LETTERS[part.what]) + "..."
                break
            bar += _LETTERS[part.what] * max(0, round(at / longest * width) - len(bar))
        bar = bar.ljust(width + 1)
        if one.limit_s is not None and (mark := round(one.limit_s / longest * width)) < len(bar):
            bar = f"{bar[:mark]}|{bar[mark + 1 :]}"
        lines.append(f"{one.who:{names}}  {bar.rstrip()}")
    used = dict.fromkeys(part.what for one in verdict.judged for part in one.parts)
    return [*lines, "", "  ".join(f"{_LETTERS[what]} {what}" for what in used) + "  | limit"]


def _longest(one: Judged) -> float:
    finite = [time for time in (one.bound_s, one.limit_s) if time is not None and math.isfinite(time)]
    known = math.fsum(part.worst_s for part in one.parts if math.isfinite(part.worst_s))
    return max([*finite, known, 1e-9])


def _legend(verdict: Verdict) -> list[str]:
    x, made = _LEFT, []
    for what in dict.fromkeys(part.what for one in verdict.judged for part in one.parts):
        made.append(
            f'<rect x="{x}" y="28" width="10" height="10" fill="{_COLOURS[what]}"/>'
            f'<text x="{x + 14}" y="37" fill="#4b5563">{escape(what)}</text>'
        )
        x += 26 + 7 * len(what)
    return made


def _bar(one: Judged, y: float, scale: float) -> list[str]:
    colour = "#222" if one.met else "#dc2626"
    made = [f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end" fill="{colour}">{escape(one.who)}</text>']
    x = float(_LEFT)
    for part in one.parts:
        made.append(_piece(part, x, y, scale))
        x += min(part.worst_s * scale, _WIDTH - _RIGHT - x)
    if one.limit_s is not None and (at := _LEFT + one.limit_s * scale) <= _WIDTH - _RIGHT + 1:
        made.append(f'<path d="M{at:.1f} {y - 5}v{_BAR + 10}" stroke="{colour}" stroke-width="2"/>')
    bound = "no bound" if math.isinf(one.bound_s) else f"{one.bound_s * 1e3:.4g} ms"
    made.append(f'<text x="{x + 8:.1f}" y="{y + 12}" fill="{colour}">{bound}</text>')
    return made


def _piece(part: Part, x: float, y: float, scale: float) -> str:
    width = min(part.worst_s * scale, _WIDTH - _RIGHT - x)
    own = min(part.alone_s * scale, width)
    colour = _COLOURS[part.what]
    told = escape(f"{part.what}, {part.where}: {part.worst_s * 1e3:.4g} ms, {part.alone_s * 1e3:.4g} ms of it its own")
    return (
        f'<g><title>{told}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}" '
        f'fill-opacity="0.35"/><rect x="{x:.1f}" y="{y}" width="{own:.1f}" height="{_BAR}" fill="{colour}"/></g>'
    )
