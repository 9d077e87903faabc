"""A mixed-integer program and the solver HiGHS (the extra `placement`). Only this module and `linear` know `highspy`.

Costs are scaled to at most 1 before they are handed over, so that tolerances mean the same in every problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringcast.errors import RingcastError

_TOLERANCE = 1e-9
_SMALLEST = 1e-6
"""A capacity below this share of what it is for counts as this share when it is the unit: HiGHS takes no factors from
1e15 on."""
_OVER = 1e-7
"""The share from which on a capacity counts as exceeded."""
What = tuple[str, int]
"""A capacity's owner: "link" or "node", and its number."""


class SolverMissing(RingcastError):
    """`highspy` is not installed."""

    def __init__(self) -> None:
        super().__init__("placing proxies needs the solver HiGHS: pip install 'ringcast[placement]'")


class SolverStopped(RingcastError):
    """The solver ended without an answer, as when its time was over before it had any plan."""

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"the solver stopped without a plan ({status}); give it more time or a smaller network")


@dataclass(frozen=True)
class Solution:
    """`bound` is what no solution can be below."""

    values: list[float]
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the cost may be above the optimum, as a share of the bound."""
        over = self.cost - self.bound
        if over <= _TOLERANCE * max(abs(self.cost), 1e-300):
            return 0.0
        return over / self.bound if self.bound > 0 else math.inf


def library() -> Any:
    """The module `highspy`. Raises SolverMissing."""
    try:
        import highspy
    except ImportError as exc:
        raise SolverMissing from exc
    return highspy


def run(limit_s: float, options: dict[str, Any], *model: Any) -> Any:
    """The solver after it ran. `model` is what its `passModel` takes. Raises SolverMissing."""
    solver = library().Highs()
    always = {
        "output_flag": False, "random_seed": 0, "primal_feasibility_tolerance": _TOLERANCE, "parallel": "off",
    }  # fmt: skip
    options = always | options
    if math.isfinite(limit_s):
        options["time_limit"] = max(0.0, limit_s)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(*model)
    solver.run()
    return solver


class Program:
    """Variables and rows, added one by one; minimised."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._whole: list[bool] = []
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._factors: list[float] = []
        self._capacities: list[tuple[What, float, int]] = []
        self.offset = 0.0

    def variable(self, cost: float = 0.0, *, whole: bool = False, low: float = 0.0, high: float = 1.0) -> int:
        self._costs.append(cost)
        self._low.append(low)
        self._high.append(high)
        self._whole.append(whole)
        return len(self._costs) - 1

    def add_cost(self, variable: int, cost: float) -> None:
        self._costs[variable] += cost

    def set_cost(self, variable: int, cost: float) -> None:
        self._costs[variable] = cost

    def cost_nothing(self) -> None:
        """Only rows matter, and what is given a cost from now on."""
        self._costs = [0.0] * len(self._costs)
        self.offset = 0.0

    def row(self, low: float, high: float, terms: Iterable[tuple[int, float]]) -> None:
        """low <= sum of factor * variable <= high. A variable may be there once."""
        for column, factor in terms:
            self._columns.append(column)
            self._factors.append(factor)
        self._starts.append(len(self._columns))
        self._row_low.append(low)
        self._row_high.append(high)

    def at_most(self, what: What, capacity: float, terms: Iterable[tuple[int, float]], already: float = 0.0) -> None:
        """What a link or node may carry, of which `already` is taken. Infinity is no row."""
        if math.isfinite(capacity) and (found := list(terms)):
            # Scaled to 1, so that a large capacity is held as exactly as a small one.
            unit = max(capacity, _SMALLEST * max(abs(factor) for _, factor in found)) or 1.0
            self.row(-math.inf, (capacity - already) / unit, [(column, factor / unit) for column, factor in found])
            self._capacities.append((what, unit, len(self._row_high) - 1))

    def overloads(self, limit_s: float = math.inf) -> list[tuple[What, float]] | None:
        """Which capacities must be exceeded and by how much, when the sum of the shares is least; None when that does
        not help. Spoils the program for `solve`. Raises SolverMissing, SolverStopped."""
        self.cost_nothing()
        # A variable can join rows that are there only column by column: the rows are written anew.
        rows = self._rows()
        extra = {}
        for what, unit, row in self._capacities:
            over = self.variable(1.0, high=math.inf)
            rows[row].append((over, -1.0))
            extra[over] = what, unit
        self._starts, self._columns, self._factors = [0], [], []
        for terms in rows:
            self._columns += [column for column, _ in terms]
            self._factors += [factor for _, factor in terms]
            self._starts.append(len(self._columns))
        solution = self.solve(0.0, limit_s)
        if solution is None:
            return None
        return [(what, unit * solution.values[over]) for over, (what, unit) in extra.items()
                if solution.values[over] > _OVER]  # fmt: skip

    def _rows(self) -> list[list[tuple[int, float]]]:
        terms = list(zip(self._columns, self._factors, strict=True))
        return [terms[a:b] for a, b in itertools.pairwise(self._starts)]

    def solve(self, gap: float = 0.0, limit_s: float = math.inf) -> Solution | None:
        """None when nothing fulfils all rows. Raises SolverMissing, SolverStopped."""
        highspy = library()
        unit = max((abs(cost) for cost in self._costs), default=0.0) or 1.0
        options = {"mip_rel_gap": max(gap, 1e-12), "mip_abs_gap": _TOLERANCE, "mip_feasibility_tolerance": _TOLERANCE}
        solver = run(limit_s, options, self._model(highspy, unit))
        status, known = solver.getModelStatus(), highspy.HighsModelStatus
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
            return None
        info = solver.getInfo()
        if status == known.kModelEmpty:
            return Solution([], self.offset, self.offset)
        if status != known.kOptimal and info.primal_solution_status != 2:
            raise SolverStopped(solver.modelStatusToString(status))
        cost = info.objective_function_value
        bound = info.mip_dual_bound if any(self._whole) and math.isfinite(info.mip_dual_bound) else cost
        if status == known.kOptimal and gap == 0.0:
            bound = cost
        return Solution(
            list(solver.getSolution().col_value), cost * unit + self.offset, min(bound, cost) * unit + self.offset
        )

    def _model(self, highspy: Any, unit: float) -> Any:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._costs), len(self._row_low)
        model.col_cost_ = np.array(self._costs) / unit
        model.col_lower_, model.col_upper_ = np.array(self._low), np.array(self._high)
        model.row_lower_, model.row_upper_ = np.array(self._row_low), np.array(self._row_high)
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in self._whole]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        model.a_matrix_.index_ = np.array(self._columns, dtype=np.int32)
        model.a_matrix_.value_ = np.array(self._factors, dtype=np.float64)
        return model
