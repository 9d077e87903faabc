"""Area averaging: what an array is when it is seen through fewer (or more) cells. Pure.

A cell of the result covers n/m cells of the source along an axis; its value is the mean over exactly that area, the
source's edge cells counted by the part that is covered. Along one axis, in units of 1/m of a source cell, the weights
are whole numbers and add up to n: integers are summed without rounding, and rounded once, half up, at the very end.
The native core does it for the usual cells, many times faster; NumPy for all others, and for tests to compare with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringcast import _core

Array = np.ndarray[Any, Any]

_NATIVE = frozenset("BHhfd")
_NATIVE_EXTENT = 2**20
_EXACT_BITS = 62
_NARROW = {np.dtype(np.uint8): np.dtype(np.uint32), np.dtype(np.uint16): np.dtype(np.uint32)}
"""Sums of fewer than 2**16 of these fit; a narrow sum is a good deal faster over a whole image."""


def averaged(source: Array, rows: int, columns: int) -> Array:
    """`source`, of two or more axes, with its first two brought to `rows` and `columns`; the same dtype.

    Raises TypeError for a dtype that has no mean, ValueError for a source without cells.
    """
    if source.ndim < 2 or 0 in source.shape:
        raise ValueError(f"an array of shape {source.shape} has no area")
    if source.shape[:2] == (rows, columns):
        return np.ascontiguousarray(source)
    if source.dtype.char in _NATIVE and source.dtype.isnative and max(*source.shape, rows, columns) <= _NATIVE_EXTENT:
        cells = np.ascontiguousarray(source)
        result = np.empty((rows, columns, *source.shape[2:]), source.dtype)
        _core.area_average(
            cells.reshape(-1).view(np.uint8), result.reshape(-1).view(np.uint8), kind=source.dtype.char,
            rows=source.shape[0], columns=source.shape[1], to_rows=rows, to_columns=columns,
            colours=int(np.prod(source.shape[2:], dtype=np.int64)),
        )  # fmt: skip
        return result
    return averaged_by_numpy(source, rows, columns)


def averaged_by_numpy(source: Array, rows: int, columns: int) -> Array:
    """The same of any dtype that has a mean. Raises TypeError for others."""
    if source.dtype.kind in "fc":
        wide = np.dtype(np.complex128 if source.dtype.kind == "c" else np.float64)
        wide = np.promote_types(wide, source.dtype)
        mean: Array = _summed(source, rows, columns, wide) / (source.shape[0] * source.shape[1])
        return mean.astype(source.dtype)
    if source.dtype.kind not in "iub":
        raise TypeError(f"an array of {source.dtype} has no mean")
    area = source.shape[0] * source.shape[1]
    plain = source.view(np.uint8) if source.dtype.kind == "b" else source
    bits = plain.dtype.itemsize * 8 + (2 * area).bit_length()
    total = _summed(plain, rows, columns, np.dtype(np.int64 if bits <= _EXACT_BITS else object))
    rounded: Array = (2 * total + area) // (2 * area)
    return rounded.astype(source.dtype)


def _summed(source: Array, rows: int, columns: int, wide: np.dtype[Any]) -> Array:
    """Weighted sums; each is the mean times the number of source cells."""
    return _along(_along(source, rows, 0, wide), columns, 1, wide)


def _along(source: Array, cells: int, axis: int, wide: np.dtype[Any]) -> Array:
    extent = source.shape[axis]
    if extent == cells:
        same: Array = source.astype(wide) * extent
        return same
    # Cell j covers [edges[j], edges[j + 1]) in units of 1/cells of a source cell.
    edges = np.arange(cells + 1, dtype=np.int64) * extent
    whole, part = np.divmod(edges, cells)
    begin, end = whole[:-1], whole[1:]
    narrow = _NARROW.get(source.dtype, wide) if extent < 2**16 and wide != np.dtype(object) else wide
    inner = np.add.reduceat(source, begin, axis=axis, dtype=narrow).astype(wide)
    # Where a cell lies within one of the source, `reduceat` gives that one instead of nothing.
    inner = np.where(_shaped(begin == end, axis, source.ndim), 0, inner)
    first = source.take(begin, axis=axis).astype(wide)
    last = source.take(np.minimum(end, extent - 1), axis=axis).astype(wide)  # past the end only with no part of it
    weight_first = _shaped(part[:-1], axis, source.ndim).astype(wide)
    weight_last = _shaped(part[1:], axis, source.ndim).astype(wide)
    total: Array = inner * cells - first * weight_first + last * weight_last
    return total


def _shaped(values: Array, axis: int, ndim: int) -> Array:
    return values.reshape([-1 if i == axis else 1 for i in range(ndim)])
