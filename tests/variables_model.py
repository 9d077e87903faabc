"""A plain model of variables: dictionaries where the core has columns. What both say must agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ringcast import _core

NAMES = [f"{a}/{b}{c}" for a in ("engine", "brake") for b in ("rpm", "temperature", "t") for c in range(4)]
LIMIT = 200

values = st.one_of(
    st.floats(width=64),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.text(max_size=40),
    st.binary(max_size=300),
    st.lists(st.floats(allow_nan=False), max_size=6).map(lambda found: np.array(found, dtype=np.float64)),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=6).map(lambda found: np.array(found, dtype=np.int32)),
)


class Model:
    """An owner's variables, beside a table."""

    def __init__(self) -> None:
        self.table = _core.VariableTable()
        self.values: dict[str, tuple[Any, int]] = {}

    def put(self, name: str, value: Any, time_ns: int) -> None:
        if name in self.values and kind(self.values[name][0]) != kind(value):
            self.remove(name)
        if name in self.values:
            assert self.table.set(name, value, time_ns)
        else:
            self.table.add(name, value, time_ns)
        self.values[name] = (value, time_ns)

    def remove(self, name: str) -> None:
        assert self.table.remove(name) == (name in self.values)
        self.values.pop(name, None)

    def packet(self, full: bool, limit: int = LIMIT) -> list[bytes]:
        return self.table.collect(full=full, period_ns=1000, frame_ms=1, limit=limit)


def kind(value: Any) -> object:
    return (np.ndarray, value.dtype.str) if isinstance(value, np.ndarray) else type(value)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, float) and one != one:
        return isinstance(other, float) and other != other
    return type(one) is type(other) and bool(one == other)


def agrees(table: _core.VariableTable, expected: dict[str, tuple[Any, int]]) -> None:
    assert sorted(table.names()) == sorted(expected)
    for name, (value, time_ns) in expected.items():
        assert same(table.get(name), value), name
        index = table.index(name)
        assert table.times(np.array([index], dtype=np.uint32))[0] == time_ns
