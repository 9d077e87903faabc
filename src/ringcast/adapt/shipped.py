"""The models of the package: what `auto:METRIC` chooses by until another one is loaded.

They are beside this file, each with the commands that made it (`models/README.md`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import rule
from ringcast.adapt.judging import FOLDER, Choose, Examples
from ringcast.adapt.model import Chooser
from ringcast.adapt.names import carried
from ringcast.adapt.wanting import Wish, plain
from ringcast.model.carrier import METRICS


def shipped_model(metric: str) -> Chooser | None:
    """The one for that metric, which may end with " in order"; None where there is none."""
    base, in_order = plain(metric)
    path = FOLDER / f"{base}{'-in-order' if in_order else ''}.json"
    return Chooser.load(path) if path.exists() else None


def ruled(metric: str, examples: Examples) -> Choose:
    """The rule as one that chooses from what examples know."""
    base, in_order = plain(metric)
    asked = Wish(next(name for name, of in METRICS.items() if of == base), ordered=in_order)
    known = {carried(name): name for name in reversed(examples.transports)}

    def choose(numbers: Mapping[str, float]) -> str:
        around = Environment(
            receivers=int(numbers["receivers"]), loss_percent=numbers["loss_percent"], burst=numbers["burst"],
            rate_hz=numbers["rate_hz"], payload_bytes=numbers["payload_bytes"], delay_us=numbers["delay_us"],
            bandwidth_mbit=numbers["bandwidth_mbit"],
        )  # fmt: skip
        return next((known[one.transport] for one in rule(around, asked) if one.transport in known), "")

    return choose
