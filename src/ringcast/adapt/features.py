"""What a model looks at: numbers of an environment, and products and quotients of them. Pure.

    feature = name *(("*" | "/") name), as "rate_hz*delay_us": how many messages are under way

A name is a number that the environment has, or one that follows from it (`DERIVED`): how long things take there. Most
of these numbers span magnitudes, so a model may ask for their logarithms. A number that is 0 is taken as `LEAST` there,
and below a fraction stroke. Training computes features by this very code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from ringcast.errors import RingcastError

LEAST = 1e-6
_PART = re.compile(r"([*/]?)([A-Za-z_][A-Za-z0-9_]*)")

Part = tuple[bool, str]
"""(whether it is divided by, the number's name)."""


HEADS_BYTES = 60
"""Of a datagram: our header and those below it."""
BLOCK, REPAIRS, REPAIR_HEADS_BYTES = 4, 3, 138
"""Of parity as it is most often chosen: messages of a block, its repairs, and what their headers take."""
HARDLY_PERCENT = 0.05
"""Less loss than this is hardly another environment than none."""
HEARTBEAT_US, FLUSH_US = 5_000.0, 5_000.0
"""After so long without a message a sender says which was the last, and a block of parity that is not full goes out."""


def _wire_us(payload_bytes: float, bandwidth_mbit: float) -> float:
    return 8 * (payload_bytes + HEADS_BYTES) / max(bandwidth_mbit, LEAST)


def _repairs_us(payload_bytes: float, bandwidth_mbit: float) -> float:
    return 8 * REPAIRS * (payload_bytes + REPAIR_HEADS_BYTES) / max(bandwidth_mbit, LEAST)


def _messages(period_us: float) -> int:
    """Of a block when it goes out: when it is full, or after FLUSH_US."""
    messages = int(FLUSH_US / period_us) + 1
    return messages if messages < BLOCK else BLOCK


def _clash_us(period_us: float, repairs_us: float) -> float:
    """The next message may be due while the repairs of a block are on the line."""
    messages = _messages(period_us)
    until_next = messages * period_us - FLUSH_US if messages < BLOCK else period_us
    wait = repairs_us - until_next
    return wait / messages if wait > 0 else 0.0


MEASURED = ("receivers", "loss_percent", "burst", "rate_hz", "payload_bytes", "delay_us", "bandwidth_mbit")
"""What daemons know of an environment."""


class Derived(NamedTuple):
    needs: tuple[str, ...]
    of: Callable[..., float]


DERIVED = {
    "period_us": Derived(("rate_hz",), lambda rate_hz: 1e6 / max(rate_hz, LEAST)),
    "wire_us": Derived(("payload_bytes", "bandwidth_mbit"), _wire_us),
    "way_us": Derived(
        ("delay_us", "payload_bytes", "bandwidth_mbit"),
        lambda delay_us, payload_bytes, bandwidth_mbit: 4 / 3 * delay_us + _wire_us(payload_bytes, bandwidth_mbit) + 5,
    ),
    "repair_us": Derived(
        ("rate_hz", "delay_us"),
        lambda rate_hz, delay_us: min(1e6 / max(rate_hz, LEAST), HEARTBEAT_US) + 8 / 3 * delay_us,
    ),
    "block_us": Derived(("rate_hz",), lambda rate_hz: min(3e6 / max(rate_hz, LEAST), FLUSH_US)),
    "clash_us": Derived(
        ("rate_hz", "payload_bytes", "bandwidth_mbit"),
        lambda rate_hz, payload_bytes, bandwidth_mbit: _clash_us(
            1e6 / max(rate_hz, LEAST), _repairs_us(payload_bytes, bandwidth_mbit)
        ),
    ),
    "seen_us": Derived(("rate_hz", "delay_us"), lambda rate_hz, delay_us: 1e6 / max(rate_hz, LEAST) + 8 / 3 * delay_us),
    "held_us": Derived(
        ("rate_hz", "delay_us", "payload_bytes", "bandwidth_mbit"),
        lambda rate_hz, delay_us, payload_bytes, bandwidth_mbit: (
            4 / 3 * delay_us
            + _wire_us(payload_bytes, bandwidth_mbit)
            + 5
            + _clash_us(1e6 / max(rate_hz, LEAST), _repairs_us(payload_bytes, bandwidth_mbit))
        ),
    ),
    "block_messages": Derived(("rate_hz",), lambda rate_hz: float(_messages(1e6 / max(rate_hz, LEAST)))),
    "lossy_percent": Derived(("loss_percent",), lambda loss_percent: loss_percent + HARDLY_PERCENT),
}
"""From one message to the next; a datagram on the line; the way of a message on average; until what was asked for again
comes: until the loss is seen, there and back; until a block of four is full, or goes out as it is; what messages wait
on average behind the repairs of such a block; until what was lost comes where only the next message shows the loss; the
way with what messages wait behind such repairs; messages of such a block; and the loss, of which 0 has a logarithm."""


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
    needed = (DERIVED[name].needs if name in DERIVED else (name,) for name in _names(features))
    return list(dict.fromkeys(name for names in needed for name in names))


def numbers(features: Sequence[str]) -> Callable[[Mapping[str, float]], list[float]]:
    """From an environment to the numbers that features are made of, each once. What it returns raises
    NumbersMissing."""
    wanted, names = inputs(features), _ordered(features)

    def found(environment: Mapping[str, float]) -> list[float]:
        try:
            return [
                DERIVED[name].of(*[environment[needed] for needed in DERIVED[name].needs])
                if name in DERIVED else environment[name] for name in names
            ]  # fmt: skip
        except KeyError:
            raise _missing(environment, wanted) from None

    return found


def taken(features: Sequence[str]) -> list[int]:
    """Which of MEASURED and DERIVED the numbers are: the native core computes these itself, because a decision takes
    microseconds. Empty where there are others."""
    at = {name: number for number, name in enumerate([*MEASURED, *DERIVED])}
    names = _ordered(features)
    return [at[name] for name in names] if at.keys() >= set(names) else []


def measured(features: Sequence[str]) -> Callable[[Mapping[str, float]], Sequence[float]]:
    """From an environment to MEASURED; what no feature needs may be missing there. What it returns raises
    NumbersMissing."""
    wanted, every = inputs(features), itemgetter(*MEASURED)

    def found(environment: Mapping[str, float]) -> Sequence[float]:
        try:
            return every(environment)  # type: ignore[no-any-return]
        except KeyError:
            if not environment.keys() >= set(wanted):
                raise _missing(environment, wanted) from None
            return [environment.get(name, 1.0) for name in MEASURED]

    return found


def _missing(environment: Mapping[str, float], wanted: Sequence[str]) -> NumbersMissing:
    return NumbersMissing([name for name in wanted if name not in environment], wanted)


def shapes(features: Sequence[str]) -> list[list[tuple[bool, int]]]:
    """Each feature as (whether it is divided by, which of the numbers). Raises ValueError."""
    at = {name: number for number, name in enumerate(_ordered(features))}
    return [[(below, at[name]) for below, name in parts(feature)] for feature in features]


def evaluator(features: Sequence[str], logarithms: bool) -> Callable[[Mapping[str, float]], list[float]]:
    """From an environment to the features' values. Raises ValueError; what it returns raises NumbersMissing."""
    # Few numbers make many features: each is looked up once, and in logarithms products are sums.
    shaped, found = shapes(features), numbers(features)

    def products(environment: Mapping[str, float]) -> list[float]:
        known = found(environment)
        values = []
        for (_, first), *more in shaped:
            value = float(known[first])
            for below, at in more:
                value = value / max(known[at], LEAST) if below else value * known[at]
            values.append(value)
        return values

    def sums(environment: Mapping[str, float]) -> list[float]:
        logs = [math.log(max(number, LEAST)) for number in found(environment)]
        values = []
        for (_, first), *more in shaped:
            value = logs[first]
            for below, at in more:
                value = value - logs[at] if below else value + logs[at]
            values.append(value)
        return values

    return sums if logarithms else products


def _names(features: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for feature in features for _, name in parts(feature)))


def _ordered(features: Sequence[str]) -> list[str]:
    """As `numbers` gives them: those of the environment, then derived ones in the order of DERIVED."""
    names = _names(features)
    return [name for name in names if name not in DERIVED] + [name for name in DERIVED if name in names]
