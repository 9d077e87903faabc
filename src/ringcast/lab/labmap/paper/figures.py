"""The paper's figures of losses and jitter, drawn from what the pipeline `rates` made of the grid. Pure."""

from __future__ import annotations

from ringcast.lab.labmap.paper.rates import Rates, Where
from ringcast.lab.labmap.paper.statements import NAMES
from ringcast.lab.measuring.report import Picture, Series

BY_RATE = ("transport", "load", "subscribers", "rate")


def pictures(found: Rates) -> list[Picture]:
    """Figures 4 to 7: under stress where that was run."""
    load = "stress" if any(found.each("lost", ("transport", "load"), load="stress")) else "idle"
    made = []
    for transport, said in NAMES.items():
        short = transport.partition("+")[0]
        lost, jitter = (
            found.each(metric, BY_RATE, transport=transport, load=load) for metric in ("lost_share", "jitter_ms")
        )
        shares = {where: told.mean for where, told in lost.items()}
        kept = {where: told.kept_mean for where, told in jitter.items() if told.kept_mean is not None}
        made.append(_picture(f"labmap_loss_{short}", f"Changes late or lost, {said}, {load}", "share", shares))
        made.append(_picture(f"labmap_jitter_{short}", f"Jitter, {said}, {load}", "ms", kept))
    return [picture for picture in made if picture.series]


def _picture(name: str, title: str, y: str, values: dict[Where, float]) -> Picture:
    """A line for each number of subscribers."""
    lines: dict[int, list[tuple[float, float]]] = {}
    for where, value in values.items():
        assert where.subscribers is not None
        assert where.rate is not None
        lines.setdefault(where.subscribers, []).append((where.rate, value))
    series = [Series(f"{number} subscriber(s)", points) for number, points in lines.items()]
    return Picture(name, title, "n/dt (changes/s)", y, series)
