"""A linear program given as arrays, solved by HiGHS: for programs with many rows, and for the prices of rows. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ringcast.placement.solve.program import SolverStopped, library, run
from ringcast.placement.solve.ways import Figures, Numbers


@dataclass(frozen=True)
class Rows:
    """low <= factors * variables <= high; row i has the entries from starts[i] to starts[i + 1]."""

    starts: Numbers
    columns: Numbers
    factors: Figures
    low: Figures
    high: Figures


@dataclass(frozen=True)
class Optimum:
    """`prices` are what one more of each row's limit would change the cost by; `took_s` is the solver's time."""

    values: Figures
    cost: float
    prices: Figures
    took_s: float


def least(costs: Figures, rows: Rows, high: float = 1.0, limit_s: float = math.inf) -> Optimum:
    """The least cost with every variable between 0 and `high`. There must be one.

    Raises SolverMissing, SolverStopped.
    """
    highspy = library()
    unit = float(np.abs(costs).max(initial=0.0)) or 1.0
    many, order = len(costs), np.int32
    # As arrays and not as a `HighsLp`, whose fields are copied number by number.
    model = (
        many, len(rows.low), len(rows.columns), int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize),
        0.0, costs / unit, np.zeros(many), np.full(many, high), rows.low, rows.high,
        rows.starts[:-1].astype(order), rows.columns.astype(order), rows.factors, np.zeros(many, dtype=order),
    )  # fmt: skip
    # Presolving takes longer than solving: these programs are large, and the dual simplex needs few steps.
    solver = run(limit_s, {"presolve": "off"}, *model)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise SolverStopped(solver.modelStatusToString(solver.getModelStatus()))
    found = solver.getSolution()
    return Optimum(
        np.array(found.col_value), solver.getInfo().objective_function_value * unit, np.array(found.row_dual) * unit,
        solver.getRunTime(),
    )  # fmt: skip
