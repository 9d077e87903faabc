"""Names of transports: how daemons write them, how experiments call them, and what a name says. Pure.

Daemons order without being told and say `unordered` where they do not; they multicast when asked to. Experiments say
`ordering` where something orders, and everything but udp and tcp is multicast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

UNORDERED = "unordered"
_AGAIN = {"nak", "ack", "tcp"}
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
R, C, FLUSH_S = 8.0, 3.0, 0.005
"""Where a name does not say them."""
_MOST = 1e6
"""Of a number in a name: it may come from any node."""


def carried(label: str) -> str:
    """How daemons write what experiments call `label`."""
    names, colon, settings = label.partition(":")
    words = [word for word in names.split("+") if word != "ordering"]
    if not words:
        words = ["multicast"]
    if words[0] not in ("udp", "tcp", "ack", "multicast"):
        words.insert(0, "multicast")
    return "+".join(words) + colon + settings


def called(transport: str) -> str:
    """How experiments call what daemons write so: the other way round than `carried`. '' for what experiments do not
    run: a stack that sends to each receiver by itself."""
    names, colon, settings = transport.partition(":")
    words = [word for word in names.split("+") if word != UNORDERED]
    if words[0] == "multicast" and len(words) > 1:
        words = words[1:]
    elif words[0] not in ("multicast", "udp", "tcp", "ack"):
        return ""
    if keeps_order(transport) and not (_AGAIN | {"udp"}) & set(words):
        words.insert(0, "ordering")
    return "+".join(words) + colon + settings


def keeps_order(transport: str) -> bool:
    """Whether a channel that daemons list so hands out messages in order."""
    return UNORDERED not in transport.partition(":")[0].split("+")


def chosen_as(transport: str) -> str:
    """What was chosen where a channel is listed so: without an order it is listed as `unordered` besides."""
    names, colon, settings = transport.partition(":")
    return "+".join(word for word in names.split("+") if word != UNORDERED) + colon + settings


class Makeup(NamedTuple):
    """What a name says. `again`: what is lost is asked for; `code` is lateral, parity or none; `r`, `c`: a code has `c`
    repairs for `r` packets, and waits no longer than `flush_s` for them; `each`: every receiver is sent to alone."""

    again: bool
    code: str
    r: float
    c: float
    flush_s: float
    each: bool
    tcp: bool


@lru_cache(1024)
def makeup(transport: str) -> Makeup:
    """Of what daemons write."""
    names, _, settings = transport.partition(":")
    words = set(names.split("+"))
    said = dict(part.partition("=")[::2] for part in settings.split(",") if part)
    code = "lateral" if "lateral" in words else "parity" if "parity" in words else ""
    r, c = _number(said.get("r"), R), _number(said.get("c"), C)
    flush_s = _seconds(said.get("flush"))
    each = "multicast" not in words
    return Makeup(bool(_AGAIN & words), code, max(r, 1.0), max(c, 0.0), flush_s, each, "tcp" in words)


def _number(text: str | None, default: float, unit: float = 1.0) -> float:
    try:
        found = unit * float(text) if text is not None else default
    except ValueError:
        return default
    return found if 0 <= found <= _MOST else default


def _seconds(text: str | None) -> float:
    unit = next((unit for unit in _UNITS_S if text is not None and text.endswith(unit)), "")
    return _number(text.removesuffix(unit), FLUSH_S, _UNITS_S[unit]) if text is not None and unit else FLUSH_S
