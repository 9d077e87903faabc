"""The project's Markdown pages: their code blocks, links and headings, for the site and for the tests of the pages.

Knows the Markdown that these pages use, not all there is: fenced blocks, inline links, `#` headings.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(
    r"(?:^ *<!--(?P<comment>(?:(?!-->).)*)-->\n+)?"
    r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block. `comment` is the HTML comment just before it, `line` the number of its first line of code."""

    line: int
    language: str
    text: str
    comment: str
    comment_line: int


def pages() -> list[Path]:
    """Every page of the project that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "bench" / "README.md"]


def blocks(text: str) -> list[Block]:
    return [
        Block(
            line=_line_of(text, found.start("text")),
            language=found["language"],
            text=textwrap.dedent(found["text"]),
            comment=found["comment"] or "",
            comment_line=_line_of(text, found.start("comment")) if found["comment"] else 0,
        )
        for found in _FENCE.finditer(text)
    ]


def without_blocks(text: str) -> str:
    """The same lines; those of fenced blocks, and of comments before them, are empty."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


def links(text: str) -> list[str]:
    """The targets of all links and pictures, but for what only looks like one within code."""
    return _LINK.findall(_CODE.sub("", without_blocks(text)))


def anchors(text: str) -> set[str]:
    """What `#...` may name on this page: headings as GitHub and the site write them."""
    found: set[str] = set()
    for heading in _HEADING.findall(without_blocks(text)):
        slug = name = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")
        again = 0
        while name in found:
            again += 1
            name = f"{slug}-{again}"
        found.add(name)
    return found


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
