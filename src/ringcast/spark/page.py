"""An HTML page of sections: words, pictures, tables. One file, nothing fetched. Pure."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import NDArray

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#111}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;font-size:13px;margin:.6rem 0}th,td{padding:.2rem .6rem;text-align:right}
th{border-bottom:1px solid #999}td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f6f7f9}
figure{margin:.8rem 0}
.chosen{outline:2px solid #2563eb}.sent{opacity:.45}#dispatch tbody tr{cursor:pointer}
svg{max-width:100%;height:auto}img{image-rendering:pixelated;width:20rem;margin-right:.6rem}
"""


@dataclass(frozen=True)
class Section:
    """`pictures` are HTML that this program made; everything else is escaped."""

    title: str
    text: str = ""
    pictures: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=list)


def page(title: str, sections: Sequence[Section], footer: str = "", script: str = "") -> str:
    """`script` is what the pictures need."""
    body = "".join(_section(section) for section in sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>{script}</head><body><h1>{escape(title)}</h1>{body}<p><small>{escape(footer)}</small></p>"
        "</body></html>\n"
    )


def image(pixels: NDArray[np.number], what: str) -> str:
    """A grey picture as an HTML image, stretched to its own darkest and lightest."""
    low, high = np.percentile(pixels, (1, 99.7))
    grey = np.clip((pixels.astype(np.float64) - low) / max(1e-9, high - low) * 255, 0, 255).astype(np.uint8)
    return f'<img alt="{escape(what)}" src="data:image/png;base64,{base64.b64encode(_png(grey)).decode()}">'


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    parts += [f"<figure>{picture}</figure>" for picture in section.pictures]
    if section.heads:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in section.heads)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
        parts.append(f"<table><tr>{head}</tr>{rows}</table>")
    return "".join(parts)


def _png(grey: NDArray[np.uint8]) -> bytes:
    height, width = grey.shape
    lines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(grey))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
