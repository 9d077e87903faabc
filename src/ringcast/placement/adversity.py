"""Tables 1 and 2 of paper 001: how adverse a proxy's place is to publisher, subscriber and proxy node. Pure.

Derived: a publisher, a node in between and a subscriber behind it (unicast), or three subscribers with different
factors (multicast, the paper's Figure 3). For every node and measure the three places are ranked: the lowest value is
Low, the highest High, what lies between is Medium; a measure that all places agree in is Low. The paper's own tables
stand beside, and `differences` says where they are not the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ringcast.placement import plan
from ringcast.placement.case import Case
from ringcast.placement.model import Charge, Costs, Demand, Link, Node, Problem, Subscriber

Level = Literal["Low", "Medium", "High"]
PLACES = ("intermediate", "publisher", "subscriber")
MEASURES = ("cpu", "bandwidth", "delay")
ROWS = ("publisher node", "subscriber node", "proxy node")
FACTORS = {"unicast": (4,), "multicast": (2, 3, 4)}
"""With multicast the paper's table holds while the scaled streams together are more than the full one: 1/2 + 1/3 + 1/4.
With 2 and 3 alone the publisher would be the best place there too."""
_COSTS = Costs(in_s=1.0, out_s=1.0, scale_s=0.1)


class Cell(NamedTuple):
    """Where in a table: the node whose load it is, the proxy's place, and what was measured."""

    row: str
    place: str
    measure: str


PAPER: dict[str, dict[Cell, Level]] = {}
_PRINTED: dict[str, tuple[str, str, str]] = {
    # Of each row: cpu and bandwidth (and, for the subscriber, delay) by place.
    "unicast": ("HH LL HH", "LLM LLH HHL", "HM"),
    "multicast": ("LL HH LL", "LLM LLH HHL", "HM"),
}
_LEVELS: dict[str, Level] = {"L": "Low", "M": "Medium", "H": "High"}
for _charge, _rows in _PRINTED.items():
    PAPER[_charge] = {
        Cell(_row, _place, _measure): _LEVELS[_letter]
        for _row, _line in zip(ROWS, _rows, strict=True)
        for _place, _letters in zip(PLACES, _line.split(), strict=False)
        for _measure, _letter in zip(MEASURES, _letters, strict=False)
    }


def derive(charge: Charge) -> dict[Cell, Level]:
    """The table that the model gives, with the cells that the paper's has."""
    case = Case(_problem(charge))
    values = {place: _measured(case, place) for place in PLACES}
    found = {}
    for cell in PAPER[charge]:
        all_places = [values[place][cell.row, cell.measure] for place in PLACES]
        found[cell] = level(values[cell.place][cell.row, cell.measure], all_places)
    return found


def differences(charge: Charge) -> list[Cell]:
    """Where the model says something else than the paper."""
    return [cell for cell, found in derive(charge).items() if found != PAPER[charge][cell]]


def level(value: float, among: Sequence[float]) -> Level:
    if value <= min(among):
        return "Low"
    return "High" if value >= max(among) else "Medium"


def _problem(charge: Charge) -> Problem:
    factors = FACTORS[charge]
    ends = [f"subscriber {i}" for i in range(len(factors))]
    return Problem(
        tuple(map(Node, ["publisher", "between", *ends])),
        (Link("publisher", "between"), *(Link("between", end) for end in ends)),
        (Demand("tag", "publisher", 1.0, 1.0,
                tuple(Subscriber(end, end, n) for end, n in zip(ends, factors, strict=True))),),
        _COSTS, charge=charge,
    )  # fmt: skip


def _measured(case: Case, place: str) -> dict[tuple[str, str], float]:
    nodes = {"intermediate": [1] * len(case.streams), "publisher": [0] * len(case.streams)}
    made = plan.made(case, nodes.get(place, [stream.node for stream in case.streams]))
    beside = [0.0] * len(made.nodes)
    for link, load in zip(case.problem.links, made.links, strict=True):
        for end in (link.a, link.b):
            beside[case.routes.number[end]] += load
    found = {}
    for row, node in zip(ROWS, (0, 2, 1), strict=True):
        found[row, "cpu"], found[row, "bandwidth"] = made.nodes[node], beside[node]
        found[row, "delay"] = made.streams[0].delay.total_s
    return found
