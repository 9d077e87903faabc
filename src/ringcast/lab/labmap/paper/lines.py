"""Tables 1 and 2 of paper 002: lines in n/dt that Spark drew (pipelines `fit` and `planes`), beside the paper's. Pure.

Nothing is computed here: rows of `gold.fits` and `gold.planes` in, tables out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ringcast.lab.labmap.paper.statements import MULTICAST, UNICAST
from ringcast.lab.measuring.report import Analysed, Table
from ringcast.lab.measuring.rows import tidy

FITS, PLANES = "gold.fits", "gold.planes"
PIPELINES = ("fit", "planes")
_NAMES = {UNICAST: "unicast", MULTICAST: "multicast"}
_FACTORS = {"ms": 1.0, "1e-3 ms s": 1e-3, "1e6 whetstones/s": 1e3, "1e3 whetstones": 1.0}
"""What the paper's values are multiplied by, by its units."""
Where = tuple[str, str, str, str, str]
"""Coefficient, transport, side, load, subscribers."""


@cache
def paper() -> dict[Where, float]:
    """In the units of ours: of latency ms and ms s, of what is left thousand Whetstone instructions a second, and
    thousand of them."""
    text = (resources.files("ringcast.lab.measuring") / "tables" / "labmap_tables.csv").read_text()
    found = {}
    for line in csv.DictReader(io.StringIO(text)):
        where = (line["coefficient"], line["transport"], line["side"], line["load"], line["subscribers"])
        found[where] = float(line["value"]) * _FACTORS[line["unit"]]
    return found


def tables(analysed: Analysed) -> list[Table]:
    fits = [row for row in analysed.rows(FITS) if row["transport"] in _NAMES]
    found = (_latency(fits, analysed.rows(PLANES)), _left_over(fits))
    return [table for table in found if table.rows]


def _latency(fits: Iterable[Mapping[str, Any]], planes: Iterable[Mapping[str, Any]]) -> Table:
    by_place = {(row["transport"], row["subscribers"], row["load"]): row for row in planes}
    heads = ("transport", "nodes", "load", "points", "a (ms)", "paper's a", "b (ms s)", "paper's b", "R2",
             "plane a + b n + c/dt: R2", "per variable (ms)", "per 1/dt (ms s)")  # fmt: skip
    lines = []
    for row in _sorted(fits, "latency"):
        plane = by_place.get((row["transport"], row["subscribers"], row["load"]), {})
        lines.append(
            [row["transport"], str(row["subscribers"]), row["load"], str(row["points"]),
             _give(row["a"], row["a_error"]), _cell(_paper("a", row)), _give(row["b"], row["b_error"]),
             _cell(_paper("b", row)), _cell(row["r2"]), *(_cell(plane.get(name)) for name in ("r2", "b", "c"))]
        )  # fmt: skip
    return Table("Latency as a line, T = a + b n/dt (Table 1), by Spark over all runs in the lake", heads, lines)


def _left_over(fits: Iterable[Mapping[str, Any]]) -> Table:
    heads = ("transport", "nodes", "side", "points", "a (10^3/s)", "paper's a", "b (10^3)", "paper's b", "R2")
    lines = [
        [row["transport"], str(row["subscribers"]), row["side"], str(row["points"]), _give(row["a"], row["a_error"]),
         _cell(_paper("a", row)), _give(row["b"], row["b_error"]), _cell(_paper("b", row)), _cell(row["r2"])]
        for row in _sorted(fits, "whetstone")
    ]  # fmt: skip
    title = "CPU left for the application, W = a + b n/dt in Whetstone instructions (Table 2), by Spark over all runs"
    return Table(title, heads, lines)


def _sorted(fits: Iterable[Mapping[str, Any]], model: str) -> list[Mapping[str, Any]]:
    return sorted(
        (row for row in fits if row["model"] == model),
        key=lambda row: (row["transport"], row["side"], row["load"], row["subscribers"]),
    )


def _paper(coefficient: str, row: Mapping[str, Any]) -> float | None:
    return paper().get((coefficient, _NAMES[row["transport"]], row["side"], row["load"], str(row["subscribers"])))


def _give(value: float, error: float | None) -> str:
    return _cell(value) if error is None else f"{_cell(value)} ± {error:.2g}"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{tidy(value):g}"
