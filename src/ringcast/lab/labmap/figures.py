"""The paper's figures of losses and jitter, drawn from the grid. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringcast.lab.labmap.results import Result
from ringcast.lab.labmap.statements import NAMES, rate, selected
from ringcast.lab.measuring.report import Picture, Series


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
