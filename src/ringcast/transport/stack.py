"""Which recovery stages a transport is put together from, as text: `lateral+nak:r=4,c=3`. Pure.

    text    = name *("+" name) [":" setting *("," setting)]
    name    = "multicast" (no stage), a stage of the native table (ordering, nak, ack, lateral, parity, yours), or
              "lossy", which loses on purpose: lossy+nak:loss=3%,burst=4,seed=7. Transports (`recipe.py`) know
              "unordered" too.
    setting = key "=" value; the keys are those of SETTINGS and LOSS, times as 5ms, 200us or 1s

nak and ack bring `ordering` with them: what waits for a repair would otherwise be overtaken. A stack says what it
promises; it knows nothing of sockets.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ringcast import _core
from ringcast.errors import BadTransport
from ringcast.transport.interface import Promises

BARE = "multicast"
ORDERING = "ordering"
LOSSY = "lossy"
PARITY_FLUSH_NS = 5_000_000
"""A block that does not fill this fast goes out as it is: on a slow stream repairs are cheap and waiting is not."""
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number is wanted")
    return int(text)


def _time_ns(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("a time is wanted, as 5ms, 200us or 1s")
    return round(float(found[1]) * _UNITS[found[2]])


def _percent(text: str) -> float:
    number, sign, rest = text.partition("%")
    if not sign or rest or not 0 <= (share := float(number) / 100) < 1:
        raise ValueError("a share is wanted, as 3%")
    return share


SETTINGS: dict[str, tuple[str, Callable[[str], int]]] = {
    "r": ("r", _count),
    "c": ("c", _count),
    "stagger": ("stagger", _count),
    "flush": ("flush_ns", _time_ns),
    "deadline": ("deadline_ns", _time_ns),
    "grtt": ("grtt_ns", _time_ns),
    "group": ("group", _count),
    "reorder": ("reorder_ns", _time_ns),
    "grace": ("grace_most_ns", _time_ns),
    "tries": ("tries", _count),
    "heartbeat": ("heartbeat_ns", _time_ns),
    "linger": ("linger_ns", _time_ns),
    "repair-rate": ("repair_bytes_per_s", _count),
    "patience": ("patience_ns", _time_ns),
    "window": ("ack_window", _count),
    "timeout": ("ack_timeout_ns", _time_ns),
}
"""Key in the text: the native field and how its value is read."""
LOSS: dict[str, Callable[[str], float]] = {
    "loss": _percent, "burst": float, "seed": _count, "duplicate": _percent, "overtake": _percent
}  # fmt: skip


class Loss(msgspec.Struct, frozen=True):
    """Loss on purpose: a share of all packets, alone (`burst` 1) or in bursts of that many on average."""

    loss: float
    burst: float = 1.0
    seed: int = 1
    duplicate: float = 0.0
    """Share of packets that come twice."""
    overtake: float = 0.0
    """Share of packets that come after the next one."""

    def native(self) -> tuple[float, float, float]:
        """(rate, enter, leave) of the native Gilbert-Elliott chain."""
        if self.burst <= 1:
            return self.loss, 0.0, 1.0
        return 0.0, self.loss / (1 - self.loss) / self.burst, 1 / self.burst


class Stack(msgspec.Struct, frozen=True):
    """`stages` as the native table names them, in the order given; `tuning` only what differs from its defaults."""

    stages: tuple[str, ...]
    tuning: dict[str, int]
    loss: Loss | None = None

    @property
    def promises(self) -> Promises:
        kinds = {name: (complete, ordered) for name, complete, ordered in _core.recovery_stages()}
        return Promises(
            reliable=any(kinds[stage][0] for stage in self.stages),
            ordered=any(kinds[stage][1] for stage in self.stages),
        )

    def retuned(self, **changes: int) -> Stack:
        return Stack(self.stages, {**self.tuning, **changes}, self.loss)


def parse(text: str) -> Stack:
    """Raises BadTransport, which says what is wrong and what there is."""
    names, colon, settings = text.partition(":")
    if colon and not settings:
        raise BadTransport(text, "nothing follows the colon")
    chosen = names.split("+")
    lossy = LOSSY in chosen
    stages = _stages(text, [name for name in chosen if name != LOSSY] or [BARE])
    given, loss = _settings(text, settings.split(",") if settings else [], lossy)
    if lossy and not {"loss", "duplicate", "overtake"} & loss.keys():
        raise BadTransport(text, "lossy needs to know how much: loss=3%, duplicate=3% or overtake=3%")
    made = msgspec.convert({"loss": 0.0, **loss, "seed": int(loss.get("seed", 1))}, Loss) if lossy else None
    return Stack(stages, {**_derived(stages, given), **given}, made)


def _stages(text: str, names: list[str]) -> tuple[str, ...]:
    if names == [BARE]:
        return ()
    known = [name for name, _, _ in _core.recovery_stages()]
    for name in names:
        if name not in known:
            raise BadTransport(text, f"there is no stage {name!r}, only {', '.join(sorted(known))}; {BARE} has none")
    if len(set(names)) != len(names):
        raise BadTransport(text, "a stage is named twice")
    waits = {"nak", "ack"} & set(names)
    return (ORDERING, *names) if waits and ORDERING not in names else tuple(names)


def _settings(text: str, settings: list[str], lossy: bool) -> tuple[dict[str, int], dict[str, float]]:
    tuning: dict[str, int] = {}
    loss: dict[str, float] = {}
    there_are = [*SETTINGS, *(LOSS if lossy else ())]
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key not in there_are or not equals:
            raise BadTransport(text, f"{setting!r} is no setting; there are {', '.join(there_are)}, each as key=value")
        if key in loss or (key in SETTINGS and SETTINGS[key][0] in tuning):
            raise BadTransport(text, f"{key!r} is set twice")
        try:
            if key in LOSS:
                loss[key] = LOSS[key](value)
            else:
                field, read = SETTINGS[key]
                tuning[field] = read(value)
        except ValueError as exc:
            raise BadTransport(text, f"{key}={value}: {exc}") from exc
    try:
        _core.check_recovery_tuning(tuning)
    except ValueError as exc:
        raise BadTransport(text, str(exc)) from exc
    return tuning, loss


def _derived(stages: tuple[str, ...], given: dict[str, int]) -> dict[str, int]:
    """What a combination needs that neither stage knows alone."""
    derived = {}
    if "nak" in stages and ("lateral" in stages or "parity" in stages):
        defaults = _core.recovery_tuning()
        # Ricochet's second phase: the repairs of two rounds have had their time.
        derived["grace_gaps"] = 2 * given.get("r", defaults["r"]) * given.get("stagger", defaults["stagger"])
    if "parity" in stages:
        derived["flush_ns"] = PARITY_FLUSH_NS
    return derived
