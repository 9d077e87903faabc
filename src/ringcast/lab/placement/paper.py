"""What paper 001 computes by hand: the star of Appendix A by bound, and Tables 1 and 2 from the model. Pure."""

from __future__ import annotations

from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import at_least
from ringcast.lab.placement.networks import N, T, star
from ringcast.placement import adversity
from ringcast.placement.adversity import MEASURES, PAPER, PLACES, ROWS, Cell
from ringcast.placement.case import Case
from ringcast.placement.model import Charge
from ringcast.placement.solve.optimise import optimise
from ringcast.placement.solve.search import one_proxy

SLOW = N * T
_LITTLE = T / 100
EXPECTED = {
    # The bound: the places of one proxy that meet it, and where two or one sit in the optimum.
    2 * T - _LITTLE: ("", ()),
    2 * T: ("", ("4", "3")),
    T + SLOW - _LITTLE: ("", ("4", "3")),
    T + SLOW: ("5", ("5", "5")),
    2 * SLOW - _LITTLE: ("5", ("5", "5")),
    2 * SLOW: ("15", ("1", "1")),
    2 * T + 2 * SLOW: ("12345", ("1", "1")),
}
_WORDS = ("below 2T", "2T (the printed bound)", "below T+T'", "T+T'", "below 2T'", "2T'", "2T+2T'")


def star_by_bound() -> Findings:
    findings, cells, right = Findings(), [], 0
    for words, (bound, (places, proxies)) in zip(_WORDS, EXPECTED.items(), strict=True):
        tries = one_proxy(Case(star(bound)))
        feasible = "".join(one.proxy for one in tries if one.feasible)
        plan = optimise(star(bound))
        found = tuple(one.proxy for one in plan.streams)
        right += (feasible, found) == (places, proxies)
        cost = f"{plan.cost:.4g}" if plan.feasible else "-"
        cells.append(
            [words, f"{bound:.3g}", " ".join(feasible) or "none", " and ".join(dict.fromkeys(found)) or "-", cost]
        )
    findings.rows.append(
        at_least("the paper's star: bounds with the places of the table", right, "bounds", len(EXPECTED))
    )
    findings.tables.append(
        Table(
            "Appendix A: the star by bound",
            ["bound", "s", "one proxy may sit on", "optimum sits on", "cost (B/s)"],
            cells,
        )
    )
    turns = one_proxy(Case(star()))
    rows = [[turn.proxy, *(f"{late:.3g}" for late in turn.delays_s), f"{turn.cost:.5g}"] for turn in turns]
    findings.tables.append(
        Table("Appendix A, step by step", ["proxy on", "delay to 4 (s)", "delay to 3 (s)", "cost (B/s)"], rows)
    )
    order = sorted(turns, key=lambda turn: (turn.cost, turn.proxy))
    order_right = [turn.proxy for turn in order] == ["1", "5", "3", "4", "2"] and order[2].cost == order[3].cost
    findings.rows.append(
        at_least("the paper's star, above all bounds: order 1, 5, 3 = 4, 2", float(order_right), "yes", 1.0)
    )
    findings.pictures.append(
        Picture("star", "The star: cost of one proxy by place", "proxy on node", "bytes per second",
                [Series("cost", [(float(i), turn.cost) for i, turn in enumerate(turns)])], kind="bars",
                labels=[turn.proxy for turn in turns])
    )  # fmt: skip
    return findings


def adversity_tables() -> Findings:
    findings = Findings()
    charges: tuple[Charge, ...] = ("unicast", "multicast")
    for number, charge in enumerate(charges, 1):
        derived, paper = adversity.derive(charge), PAPER[charge]
        same = sum(derived[cell] == paper[cell] for cell in paper)
        findings.rows.append(
            at_least(
                f"Table {number} ({charge}): cells as in the paper", same, "cells", None, float(len(paper)), "shape"
            )
        )
        cells = []
        for row in ROWS:
            for measure in MEASURES:
                found = [_both(derived, paper, Cell(row, place, measure)) for place in PLACES]
                if any(found):
                    cells.append([f"{row}, {measure}", *found])
        heads = ["", *(f"proxy at {place}" for place in PLACES)]
        findings.tables.append(Table(f"Table {number}: adversity with {charge}, derived (paper)", heads, cells))
    findings.notes.append(
        "Table 2's one difference: with more scaled bytes than full ones the proxy's node carries least (1 + S < 2 S) "
        "when it has the proxy; the paper repeats Table 1's Medium there"
    )
    return findings


def _both(derived: dict[Cell, adversity.Level], paper: dict[Cell, adversity.Level], cell: Cell) -> str:
    return f"{derived[cell]} ({paper[cell]})" if cell in paper else ""
