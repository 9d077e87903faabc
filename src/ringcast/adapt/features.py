"""What a model looks at: numbers of an environment, and products and quotients of them. Pure.

    feature = name *(("*" | "/") name), as "rate_hz*delay_us": how many messages are under way

Most of these numbers span magnitudes, so a model may ask for their logarithms. A number that is 0 is taken as `LEAST`
there, and below a fraction stroke. Training computes the same by the same rule (`spark/pipelines/examples.py`).
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
    # Few numbers make many features: each is looked up once, and in logarithms products are sums.
    shaped = [[(below, wanted.index(name)) for below, name in parts(feature)] for feature in features]

    def numbers(environment: Mapping[str, float]) -> list[float]:
        try:
            return [environment[name] for name in wanted]
        except KeyError:
            raise NumbersMissing([name for name in wanted if name not in environment], wanted) from None

    def products(environment: Mapping[str, float]) -> list[float]:
        found = numbers(environment)
        values = []
        for (_, first), *more in shaped:
            value = float(found[first])
            for below, at in more:
                value = value / max(found[at], LEAST) if below else value * found[at]
            values.append(value)
        return values

    def sums(environment: Mapping[str, float]) -> list[float]:
        logs = [math.log(max(number, LEAST)) for number in numbers(environment)]
        values = []
        for (_, first), *more in shaped:
            value = logs[first]
            for below, at in more:
                value = value - logs[at] if below else value + logs[at]
            values.append(value)
        return values

    return sums if logarithms else products
