"""Drawings are well-formed whatever the numbers and names."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringcast.spark.report.drawing import Drawing, steps
from ringcast.spark.report.page import Section, image, page

REAL = st.floats(-1e6, 1e6)


@given(REAL, REAL, st.lists(st.tuples(REAL, REAL), max_size=5), st.text(st.characters(codec="ascii", min_codepoint=32)))
def test_any_numbers_and_names_give_well_formed_svg(
    low: float, high: float, points: list[tuple[float, float]], name: str
) -> None:
    drawing = Drawing(name, (min(low, high), max(low, high)), (0.0, 1.0), (name, name))
    drawing.grid()
    drawing.line(points, "#111", name)
    drawing.dots(points, "#222", name)
    drawing.bar(0.0, 1.0, 0.5, "#333", name)
    ElementTree.fromstring(drawing.svg())


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_axes_have_a_few_round_numbers_inside(low: float, span: float) -> None:
    found = steps(low, low + span)
    assert 2 <= len(found) <= 9
    assert all(low - span * 1e-6 <= value <= low + span * (1 + 1e-6) for value in found)


def test_a_page_escapes_what_others_wrote() -> None:
    text = page("<t>", [Section("a", "x < y", [], ["<h>"], [["<script>"]])])
    assert "<script>" not in text
    assert "x &lt; y" in text


def test_an_image_is_a_png_of_its_size() -> None:
    import base64

    shown = image(np.arange(12, dtype=np.uint16).reshape(3, 4), "what")
    data = base64.b64decode(shown.split("base64,")[1].split('"')[0])
    assert data.startswith(b"\x89PNG")
    assert data[16:24] == (4).to_bytes(4, "big") + (3).to_bytes(4, "big")
