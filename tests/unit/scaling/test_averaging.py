"""Area averaging against an oracle that takes its time and rounds only once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ringcast import _core
from ringcast.scaling.averaging import averaged, averaged_by_numpy

extents = st.integers(1, 12)
INTEGERS = [np.uint8, np.uint16, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.int8]


def overlap(cell: int, cells: int, source: int, extent: int) -> Fraction:
    """How much of source cell `source` lies in cell `cell` of the result."""
    begin, end = Fraction(cell * extent, cells), Fraction((cell + 1) * extent, cells)
    return max(Fraction(0), min(end, Fraction(source + 1)) - max(begin, Fraction(source)))


def exact(source: np.ndarray, rows: int, columns: int, row: int, column: int) -> Fraction:
    height, width = source.shape
    total = sum(
        (
            overlap(row, rows, y, height) * overlap(column, columns, x, width) * Fraction(source[y, x].item())
            for y in range(height)
            for x in range(width)
        ),
        Fraction(0),
    )
    return total * rows * columns / (height * width)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), dtype=st.sampled_from(INTEGERS), height=extents, width=extents, rows=extents, columns=extents)
def test_integers_are_the_exact_mean_rounded_half_up(data, dtype, height, width, rows, columns):
    source = data.draw(arrays(dtype, (height, width)))
    found = averaged(source, rows, columns)
    assert found.dtype == dtype
    assert found.shape == (rows, columns)
    for row in range(rows):
        for column in range(columns):
            assert found[row, column] == math.floor(exact(source, rows, columns, row, column) + Fraction(1, 2))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), height=extents, width=extents, rows=extents, columns=extents)
def test_floats_are_the_mean(data, height, width, rows, columns):
    source = data.draw(arrays(np.float32, (height, width), elements=st.floats(-1000, 1000, width=32)))
    found = averaged(source, rows, columns)
    assert found.dtype == np.float32
    for row in range(rows):
        for column in range(columns):
            wanted = float(exact(source, rows, columns, row, column))
            assert math.isclose(found[row, column], wanted, rel_tol=1e-5, abs_tol=1e-3)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), height=extents, width=extents, rows=extents, columns=extents)
def test_the_mean_of_an_image_stays_within_rounding(data, height, width, rows, columns):
    source = data.draw(arrays(np.uint8, (height, width, 3)))
    found = averaged(source, rows, columns)
    for colour in range(3):
        assert abs(float(found[:, :, colour].mean()) - float(source[:, :, colour].mean())) <= 0.5 + 1e-9


def test_colours_are_scaled_each_by_itself():
    source = np.random.default_rng(1).integers(0, 256, (40, 30, 4), np.uint8)
    found = averaged(source, 7, 11)
    for colour in range(4):
        assert (found[:, :, colour] == averaged(source[:, :, colour], 7, 11)).all()


def test_whole_ratios_are_the_mean_of_blocks():
    source = np.random.default_rng(2).integers(0, 2**16, (60, 80), np.uint16)
    blocks = source.reshape(20, 3, 20, 4).astype(np.int64).sum(axis=(1, 3))
    assert (averaged(source, 20, 20) == (2 * blocks + 12) // 24).all()


def test_a_large_white_image_stays_white():
    assert (averaged(np.full((1500, 2000), 255, np.uint8), 7, 3) == 255).all()
    assert (averaged(np.full((3, 70000), 2**16 - 1, np.uint16), 2, 7) == 2**16 - 1).all()


def test_truth_is_a_majority():
    assert averaged(np.array([[True, False], [False, False]]), 1, 1).tolist() == [[False]]
    assert averaged(np.array([[True, False], [False, True]]), 1, 1).tolist() == [[True]]


def test_complex_numbers_and_views_with_strides():
    source = np.arange(24, dtype=np.complex64).reshape(4, 6)[::2, ::-1] * (1 + 2j)
    assert averaged(source, 1, 1)[0, 0] == pytest.approx(source.mean())
    assert averaged(source, 2, 6).flags.c_contiguous


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0, 2))])
def test_what_has_no_area(bad):
    with pytest.raises(ValueError, match="no area"):
        averaged(bad, 2, 2)


def test_what_has_no_mean():
    with pytest.raises(TypeError, match="no mean"):
        averaged(np.array([["a", "b"]]), 1, 1)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), dtype=st.sampled_from([np.uint8, np.uint16, np.int16, np.float32, np.float64]), rows=extents)
def test_the_core_and_numpy_agree(data, dtype, rows):
    bounds = {"elements": st.floats(-1e6, 1e6, width=32)} if dtype in (np.float32, np.float64) else {}
    source = data.draw(arrays(dtype, st.tuples(extents, extents, st.integers(1, 4)), **bounds))
    fast, slow = averaged(source, rows, 5), averaged_by_numpy(source, rows, 5)
    assert fast.dtype == slow.dtype
    if source.dtype.kind == "f":
        assert np.allclose(fast, slow, rtol=1e-6, atol=1e-2)
    else:
        assert (fast == slow).all()


@pytest.mark.parametrize("bad", [{"kind": "x"}, {"rows": 0}, {"to_rows": 2**40}, {"columns": 5}, {"colours": 2}])
def test_the_core_checks_what_it_is_given(bad):
    shape = {"kind": "B", "rows": 4, "columns": 4, "to_rows": 2, "to_columns": 2, "colours": 1} | bad
    with pytest.raises(ValueError, match=r"cells|shape"):
        _core.area_average(bytes(16), bytearray(4), **shape)


def test_other_byte_orders():
    source = np.arange(16, dtype=">u2").reshape(4, 4)
    found = averaged(source, 2, 2)
    assert found.dtype == source.dtype
    assert found.tolist() == [[3, 5], [11, 13]]
