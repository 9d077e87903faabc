"""The paper's figures of losses and jitter, and what is left to the application, drawn from the grid. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringcast.lab.labmap.results import Result
from ringcast.lab.labmap.statements import NAMES, rate, selected
from ringcast.lab.measuring.report import Picture, Series, Table
from ringcast.lab.measuring.rows import number


def pictures(found: Sequence[Result]) -> list[Picture]:
    """Figures 4 to 7: under stress where that was run."""
    latency = [one for one in found if "latency_ms" in one.metrics]
    load = "stress" if selected(latency, load="stress") else "idle"
    made = []
    for transport, said in NAMES.items():
        some = selected(latency, load=load, transport=transport)
        short = transport.partition("+")[0]
        made.append(
            _picture(f"labmap_loss_{short}", f"Changes late or lost, {said}, {load}", "share", some, "lost_share")
        )
        kept = [one for one in some if one.metrics["lost"] == 0]
        made.append(_picture(f"labmap_jitter_{short}", f"Jitter, {said}, {load}", "ms", kept, "jitter_ms"))
    return [picture for picture in made if picture.series]


def _picture(name: str, title: str, y: str, some: Sequence[Result], metric: str) -> Picture:
    series = []
    for subscribers in sorted({float(one.configuration["subscribers"]) for one in some}):
        points: dict[float, list[float]] = {}
        for one in selected(some, subscribers=subscribers):
            points.setdefault(rate(one), []).append(one.metrics[metric])
        means = [(at, float(np.mean(values))) for at, values in sorted(points.items())]
        series.append(Series(f"{subscribers:g} subscriber(s)", means))
    return Picture(name, title, "n/dt (changes/s)", y, series)


def left_over(found: Sequence[Result]) -> Table | None:
    """Table 2 for a look: W = a + b n/dt, in thousand Whetstone instructions a second, of both sides."""
    loaded = [one for one in found if "whetstones" in one.metrics]
    keys = sorted(
        {(c["transport"], c["subscribers"], c["side"]) for c in (one.configuration for one in loaded)}, key=str
    )
    rows = []
    for transport, subscribers, side in keys:
        some = selected(loaded, transport=transport, subscribers=subscribers, side=side)
        rates = np.array([rate(one) for one in some])
        if len(set(rates.tolist())) < 2:
            continue
        b, a = np.polyfit(rates, np.array([one.metrics["whetstones"] for one in some]), 1)
        rows.append([str(transport), f"{subscribers:g}", str(side), number(float(a)), f"{b:.3g}"])
    heads = ("transport", "nodes", "side", "a (10^3/s)", "b (10^3)")
    return Table("CPU left for the application: W = a + b n/dt (Table 2)", heads, rows) if rows else None
