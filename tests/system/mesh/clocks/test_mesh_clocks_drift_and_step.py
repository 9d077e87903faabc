"""Daemons whose clocks are seconds apart, drift, and are set while everything runs. The clocks are those of the
daemons' processes (RINGCAST_CLOCK_*), so that the truth is known exactly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ringcast

DAY_NS = 1_700_000_000_000_000_000


def truth_ns(ahead_s: float, drift: float) -> float:
    """How far such a clock is ahead now."""
    return ahead_s * 1e9 + drift * (time.time_ns() - DAY_NS)


@pytest.mark.parametrize("drift", [0.7e-6, 7e-6])
def test_offset_and_drift_are_within_the_bound(drift: float, make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2, a={"RINGCAST_CLOCK_AHEAD_S": "3.25", "RINGCAST_CLOCK_DRIFT": str(drift)})

    def check(session: ringcast.Session, node: str, sign: int) -> None:
        # Another process may run between the two readings: the truth lies between what it was and what it is.
        before = sign * truth_ns(3.25, drift)
        clock = session.clock(node)
        after = sign * truth_ns(3.25, drift)
        assert clock.source == "measured"
        low, high = min(before, after), max(before, after)
        assert low - clock.bound_ns <= clock.offset_ns <= high + clock.bound_ns

    eventually(lambda: b.session.clock("a").probes >= 20 and a.session.clock("b").probes >= 20)
    for _ in range(5):
        check(b.session, "a", 1)
        check(a.session, "b", -1)
    assert b.session.clock("b").source == "own"
    with pytest.raises(ringcast.BrokenError, match="'ringcast nodes'"):
        b.session.clock("nobody")


def test_a_step_is_noticed_on_both_sides_and_told(make_mesh: Any, eventually: Callable[..., None]) -> None:
    for lead_s in (5, 20, 60):  # so that a slow machine has its daemons up before the clock is set
        at = time.time() + lead_s
        a, b = make_mesh(2, a={"RINGCAST_CLOCK_STEP": f"0.02@{at}"})
        events = {node.name: node.session.subscribe(f"@ringcast/{node.name}/clocks") for node in (a, b)}
        eventually(lambda b=b: b.session.clock("a").probes >= 8)
        if time.time() < at - 0.5:
            break
    told = {node: sub.recv(timeout=60).data for node, sub in events.items()}
    assert (told["a"]["kind"], told["a"]["node"]) == ("own-step", "")
    assert (told["b"]["kind"], told["b"]["node"]) == ("step", "a")
    for event in told.values():
        assert abs(event["by_ns"] - 20_000_000) < 10_000_000
    eventually(lambda: abs(b.session.clock("a").offset_ns - 20_000_000) <= b.session.clock("a").bound_ns)
    assert b.session.clock("a").steps == 1
    assert a.session.clock("b").steps == 0, "it was its own"


def test_a_common_source_that_is_violated(make_mesh: Any, eventually: Callable[..., None], tmp_path: Path) -> None:
    config = tmp_path / "ringcast.toml"
    config.write_text('[clock]\nsource = "common"\n')
    a, b = make_mesh(2, a={"RINGCAST_CLOCK_AHEAD_S": "2"}, b={"RINGCAST_CONFIG": str(config)})
    eventually(lambda: b.session.status().clocks)
    with pytest.raises(ringcast.errors.ClocksDisagree, match=r"node a is \+(2000|1999)\.") as caught:
        b.session.clock("a")
    assert caught.value.node == "a"
    assert b.session.tag("@ringcast/b/clocks").history().latest().data["kind"] == "violation"
    row = next(row for row in b.session.nodes() if row.name == "a")
    assert row.clock is not None
    assert row.clock.source == "common"
    assert a.session.clock("b").source == "measured", "the other was told nothing of a common one"
