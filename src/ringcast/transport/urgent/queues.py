"""Queues that keep a part of a link for packets of some code points, as commands for `tc`. Pure.

    HTB ── whole link ─┬─ default: what nobody reserved, in the bands of pfifo_fast
                       └─ one class per code point, with the sum of what its channels reserved

A class may borrow what others leave. Invariant: what is reserved for all code points together leaves a tenth of the
link for everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping

HANDLE = 0x7CA0
"""By which these queues are known as ours."""
MOST_SHARE = 0.9
_WHOLE, _DEFAULT, _FIRST = 1, 2, 0x10
_BURST_S = 1e-4
_LEAST_BURST = 1600


def commands(dev: str, link_bps: int, before: Mapping[int, int], after: Mapping[int, int]) -> list[str]:
    """From what is reserved now to what is to be, by code point; {} is without any queues of ours. A code point with 0
    keeps its class, because packets may wait there, but is served like the default."""
    if not after:
        return [f"qdisc delete dev {dev} root handle {HANDLE:x}:"] if before else []
    lines = [] if before else [f"qdisc add dev {dev} root handle {HANDLE:x}: htb default {_DEFAULT:x}"]
    lines.append(_class(dev, "change" if before else "add", _WHOLE, 0, link_bps, link_bps, 0))
    rest = max(link_bps // 100, link_bps - sum(after.values()))
    lines.append(_class(dev, "change" if before else "add", _DEFAULT, _WHOLE, rest, link_bps, 3))
    if not before:
        lines.append(f"qdisc add dev {dev} parent {HANDLE:x}:{_DEFAULT:x} pfifo_fast")
    for code, bps in sorted(after.items()):
        shape = (_FIRST + code, _WHOLE, bps or link_bps // 100, link_bps, 1 if bps else 3)
        if code not in before:
            lines += [_class(dev, "add", *shape), *_filters(dev, code)]
        elif before[code] != bps:
            lines.append(_class(dev, "change", *shape))
    return lines


def class_of(code: int) -> str:
    """As `tc class show` names it."""
    return f"{HANDLE:x}:{_FIRST + code:x}"


def _class(dev: str, verb: str, minor: int, parent: int, rate_bps: int, ceil_bps: int, prio: int) -> str:
    above = f"{HANDLE:x}:{parent:x}" if parent else f"{HANDLE:x}:"
    burst = max(_LEAST_BURST, round(ceil_bps / 8 * _BURST_S))
    return (
        f"class {verb} dev {dev} parent {above} classid {HANDLE:x}:{minor:x} htb rate {rate_bps}bit ceil {ceil_bps}bit "
        f"prio {prio} burst {burst} cburst {burst} quantum {_LEAST_BURST}"
    )


def _filters(dev: str, code: int) -> list[str]:
    octet, to = f"0x{code << 2:02x} 0xfc", f"flowid {class_of(code)}"
    head = f"filter add dev {dev} parent {HANDLE:x}: prio"
    return [
        f"{head} 1 protocol ip u32 match ip dsfield {octet} {to}",
        f"{head} 2 protocol ipv6 u32 match ip6 priority {octet} {to}",
    ]
