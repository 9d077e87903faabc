from __future__ import annotations

import pytest

from ringcast.lab.adamant.field.plan import AS_IT_COMES, CONTENDERS, Links, field_plan, links_of, prediction
from ringcast.lab.adamant.grid import Cell
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
        assert (out_of_order > 0) == (contender.name == f"lateral:r=4,c=3{AS_IT_COMES}"), contender.name


def test_the_plan_is_what_was_asked_for() -> None:
    plan = field_plan(quick=False)
    assert {cell.receivers for cell in plan.cells} == {cell.receivers for cell in plan.slow_cells} == {3, 10, 25}
    assert {cell.rate_hz for cell in plan.slow_cells} == {10.0, 25.0, 50.0}
    assert len(plan.slow_cells) == 27
    assert {cell.loss for cell in plan.cells} == {0.0, 0.01, 0.03}
    assert {cell.rate_hz for cell in plan.cells} == {100.0}
    assert plan.runs == len(plan.cells) * len(CONTENDERS) + 27
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
