"""Drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from ringcast.lab.measuring.picture import draw
from ringcast.lab.measuring.report import Picture, Series

LINES = Picture(
    "lines", "Delays & sizes", "bytes", "us",
    [Series("here", [(1, 2.0), (64, 3.0)], errors=[0.1, 0.2]), Series("then", [(1, 6.0), (64, 9.0)], paper=True)],
)  # fmt: skip
BARS = Picture("bars", "By place", "", "us", [Series("here", [(0, 2.0), (1, 3.0)])], "bars", ["near", "far"])


def words(path: Path) -> set[str]:
    return {element.text for element in ET.parse(path).iter() if element.text and element.text.strip()}


def test_lines_say_what_they_are(tmp_path):
    path = draw(LINES, tmp_path)
    assert path == tmp_path / "lines.svg"
    assert words(path) >= {"Delays & sizes", "bytes", "us", "here", "then", LINES.paper_y}


def test_bars_have_their_labels(tmp_path):
    assert words(draw(BARS, tmp_path)) >= {"near", "far", "By place"}


def test_a_picture_without_the_paper_has_no_second_scale(tmp_path):
    assert BARS.paper_y not in words(draw(BARS, tmp_path))


def test_the_same_picture_gives_the_same_bytes(tmp_path):
    first = draw(LINES, tmp_path).read_bytes()
    assert draw(LINES, tmp_path).read_bytes() == first
