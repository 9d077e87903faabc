"""What a model looks at: numbers of an environment, and products and quotients of them. Pure.

    feature = name *(("*" | "/") name), as "rate_hz*delay_us": how many messages are under way

Most of these numbers span magnitudes, so a model may ask for their logarithms. What is 0 is taken as `LEAST` there and
below a fraction stroke. Training computes the same with the same constants (`spark/pipelines/examples.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from ringcast.errors import RingcastError

LEAST = 1e-6
_PART = re.compile(r"([*/]?)([A-Za-z_][A-Za-z0-9_]*)")

Part = tuple[bool, str]
"""(whether it is divided by, the number's name)."""


class NumbersMissing(RingcastError, LookupError):
    """An environment does not say all that the model looks at."""

    def __init__(self, missing: Sequence[str], wanted: Sequence[str]) -> None:
        self.missing = list(missing)
        self.wanted = list(wanted)
        super().__init__(f"the model also needs {', '.join(missing)}; it looks at {', '.join(wanted)}")


def parts(feature: str) -> list[Part]:
    """Raises ValueError."""
    found = list(_PART.finditer(feature))
    signs = [one[1] for one in found]
    if "".join(one[0] for one in found) != feature or not found or signs[0] or not all(signs[1:]):
        raise ValueError(f"{feature!r} is no feature: names, with * or / between them")
    return [(one[1] == "/", one[2]) for one in found]


def inputs(features: Sequence[str]) -> list[str]:
    """The numbers that an environment has to name."""
    return list(dict.fromkeys(name for feature in features for _, name in parts(feature)))


def evaluator(features: Sequence[str], logarithms: bool) -> Callable[[Mapping[str, float]], list[float]]:
    """From an environment to the features' values. Raises ValueError; what it returns raises NumbersMissing."""
    wanted = inputs(features)
    shaped = [(parts(feature)[0][1], parts(feature)[1:]) for feature in features]

    def evaluate(environment: Mapping[str, float]) -> list[float]:
        values = []
        try:
            for first, more in shaped:
                value = environment[first]
                for below, name in more:
                    value = value / max(environment[name], LEAST) if below else value * environment[name]
                values.append(math.log(max(value, LEAST)) if logarithms else float(value))
        except KeyError:
            raise NumbersMissing([name for name in wanted if name not in environment], wanted) from None
        return values

    return evaluate
