"""Drawings are well-formed whatever the numbers and names."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from ringcast.lab.measuring.drawing import Drawing, steps

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
    right = drawing.with_right_scale((0.0, 2.0), name)
    right.line(points, "#444", name, dash="6 4")
    right.errors(points, [0.5] * len(points), "#444")
    ElementTree.fromstring(drawing.svg())


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_axes_have_a_few_round_numbers_inside(low: float, span: float) -> None:
    found = steps(low, low + span)
    assert 2 <= len(found) <= 9
    assert all(low - span * 1e-6 <= value <= low + span * (1 + 1e-6) for value in found)


def test_a_right_scale_leaves_the_left_one_as_it_was() -> None:
    drawing = Drawing("two", (0, 1), (0, 10), two_scales=True)
    before = drawing.up(10)
    right = drawing.with_right_scale((0, 1000), "others")
    assert right.up(1000) == drawing.up(10) == before
    assert right.up(500) == drawing.up(5)


def test_a_long_legend_takes_more_lines_and_stays_inside() -> None:
    drawing = Drawing("many", (0, 1), (0, 1))
    for number in range(20):
        drawing.line([(0, 0), (1, 1)], "#111111", f"a series with a long name, number {number}")
    svg = ElementTree.fromstring(drawing.svg())
    width, height = map(int, svg.attrib["viewBox"].split()[2:])
    texts = [element for element in svg.iter() if element.tag.endswith("text") and "number" in (element.text or "")]
    assert len(texts) == 20
    assert all(float(text.attrib["x"]) < width and float(text.attrib["y"]) < height for text in texts)
