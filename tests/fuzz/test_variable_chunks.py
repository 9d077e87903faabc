"""Bytes that claim to be chunks of variables: a table and a view refuse them whole, or take them."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast import _core


def chunks() -> list[bytes]:
    table = _core.VariableTable()
    for number in range(40):
        table.add(f"a/b{number}", float(number), number)
    for name, value in (("text", "hello"), ("raw", b"\x00" * 9), ("yes", True), ("n", -5)):
        table.add(name, value, 10**18)
    full = table.collect(full=True, period_ns=5, frame_ms=7, limit=400)
    table.remove("a/b3")
    table.set("n", 7)
    return full + table.collect(full=False, period_ns=5, frame_ms=7, limit=400)


GOOD = chunks()


@settings(max_examples=400, deadline=None)
@given(data=st.binary(max_size=600))
def test_any_bytes(data: bytes) -> None:
    table = _core.VariableTable()
    _, _, bad = table.apply([data])
    assert bad in (0, 1)
    assert bad == 0 or len(table) == 0


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_good_chunks_with_a_few_other_bytes(seed: int) -> None:
    rng = random.Random(seed)
    table, view = _core.VariableTable(), _core.VariableView(["a/**", "n"], mode="on_change", longest_s=0.001)
    for _ in range(4):
        damaged = bytearray(rng.choice(GOOD))
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 255, rng.randrange(256)))
        cut = bytes(damaged[: rng.randrange(1, len(damaged) + 1)]) if rng.random() < 0.3 else bytes(damaged)
        before = {name: table.get(name) for name in table.names()}
        _, _, bad = table.apply([cut], [rng.randrange(-(2**63), 2**63)])
        if bad:
            assert {name: table.get(name) for name in table.names()}.keys() == before.keys(), "nothing of it is stored"
        view.feed([cut], [rng.randrange(-(2**63), 2**63)])
        for out in view.poll(seed + 1):
            assert _core.VariableTable().apply([out])[2] == 0, "what a view puts out are chunks"
    assert len(table) <= _core.MOST_VARIABLES
