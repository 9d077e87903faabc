from __future__ import annotations

import pytest

from ringcast.lab.adamant.field.plan import (
    AS_IT_COMES,
    CONTENDERS,
    LATERAL_R,
    Links,
    field_plan,
    links_of,
    prediction,
)
from ringcast.lab.adamant.grid import Cell, paper_grid
from ringcast.lab.simulation import packet_loss
from ringcast.transport.recipe import read

CELL = Cell(2, 0.03, 1.0, 100.0)


def test_every_contender_is_asked_of_daemons_and_of_the_simulator() -> None:
    for contender in CONTENDERS:
        scenario = prediction(CELL, contender, Links(50.0, 20.0), 30, 1)
        assert packet_loss.run(scenario).received.shape == (2, 30)
        if contender.asked not in ("udp", "tcp"):
            recipe = read(contender.asked)
            assert recipe.promises.reliable == contender.complete
            assert recipe.shape.multicast == contender.multicast


def test_predictions_deliver_in_order_as_rings_are_read() -> None:
    for contender in CONTENDERS:
        scenario = prediction(Cell(5, 0.2, 1.0, 100.0), contender, Links(50.0, 20.0), 500, 3)
        out_of_order = packet_loss.run(scenario).out_of_order
        assert not (contender.ordered and out_of_order), contender.name
        # Parity is here before the next update is due.
        late = [f"lateral:r={r},c=3{AS_IT_COMES}" for r in LATERAL_R]
        assert (out_of_order > 0) == (contender.name in late), contender.name


def test_lateral_in_order_waits_as_long_as_its_repairs_take() -> None:
    by_name = {contender.name: contender for contender in CONTENDERS}
    for name, rate_hz, patience in (
        ("lateral:r=4,c=3", 100.0, "80ms"),
        ("lateral:r=8,c=3", 100.0, "160ms"),
        ("lateral:r=8,c=3", 10.0, "500ms"),
        ("parity:r=4,c=3", 10.0, "10ms"),
    ):
        scenario = prediction(Cell(3, 0.01, 1.0, rate_hz), by_name[name], Links(50.0, 20.0), 30, 1)
        assert scenario.transport.endswith(f",patience={patience}")


def test_the_plan_is_the_whole_grid_of_the_paper() -> None:
    plan, grid = field_plan(quick=False), paper_grid(quick=False)
    cells = {*plan.cells, *plan.slow_cells}
    assert cells == {cell for cell in grid.cells if cell.burst == 1}
    assert {"tcp", "udp", "multicast", "nak", *(f"lateral:r={r},c=3{AS_IT_COMES}" for r in (4, 8))} <= {
        contender.name for contender in plan.contenders
    }
    assert {cell.rate_hz for cell in plan.cells} == {100.0}
    assert plan.runs == 15 * len(CONTENDERS) + 45


def test_the_quick_plan_is_short() -> None:
    quick = field_plan(quick=True)
    assert quick.runs < 10
    # What the links are like is always learned first.
    assert quick.cells[0].loss == 0
    assert quick.contenders_of(quick.cells[0])[0].name == "udp"


def test_links_are_as_the_lossless_stream_found_them() -> None:
    links = links_of([100.0] * 10 + [120.0] * 85 + [9000.0] * 5)
    assert links == Links(100.0, 40.0)
    with pytest.raises(ValueError, match="no samples"):
        links_of([])
