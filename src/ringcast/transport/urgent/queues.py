"""Queues that keep a part of a link for packets of some code points, as commands for `tc`. Pure.

    root ── whole link ─┬─ default: what nobody reserved, in the bands of pfifo_fast
                        └─ one class per code point, with the sum of what its channels reserved

HTB, or HFSC where the kernel has it (the queue of paper 001). There a class has a real-time service curve: its first
packet goes at its part of all that may be reserved, and from then on it has its rate; together the curves are never
above what the link can do. A class may borrow what others leave. Invariant: what is reserved for all code points
together leaves a tenth of the link for everybody else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

HANDLE = 0x7CA0
"""By which these queues are known as ours."""
MOST_SHARE = 0.9
_WHOLE, _DEFAULT, _FIRST = 1, 2, 0x10
_BURST_S = 1e-4
_LEAST_BURST = 1600
_PACKET_BYTES = 1514


def commands(
    dev: str, link_bps: int, before: Mapping[int, int], after: Mapping[int, int], *, hfsc: bool = False
) -> list[str]:
    """From what is reserved now to what is to be, by code point; {} is without any queues of ours. A code point with 0
    keeps its class, because packets may wait there, but is served like the default."""
    if not after:
        return [f"qdisc delete dev {dev} root handle {HANDLE:x}:"] if before else []
    if hfsc:
        return _curves(dev, link_bps, before, after)
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


def _curves(dev: str, link_bps: int, before: Mapping[int, int], after: Mapping[int, int]) -> list[str]:
    """The same by HFSC. What one class has of the link's first moments depends on all others', so all are changed."""
    verb = "change" if before else "add"
    lines = [] if before else [f"qdisc add dev {dev} root handle {HANDLE:x}: hfsc default {_DEFAULT:x}"]
    whole, most = f"{link_bps}bit", sum(after.values())
    lines.append(f"{_head(dev, verb, _WHOLE, 0)} hfsc ls rate {whole} ul rate {whole}")
    rest = max(link_bps // 100, link_bps - most)
    lines.append(f"{_head(dev, verb, _DEFAULT, _WHOLE)} hfsc ls rate {rest}bit ul rate {whole}")
    if not before:
        lines.append(f"qdisc add dev {dev} parent {HANDLE:x}:{_DEFAULT:x} pfifo_fast")
    for code, bps in sorted(after.items()):
        share = max(bps, round(MOST_SHARE * link_bps * bps / most)) if bps else 0
        packet_us = math.ceil(_PACKET_BYTES * 8 * 1e6 / share) if share else 0
        real_time = f"rt m1 {share}bit d {packet_us}us m2 {bps}bit " if bps else ""
        named = _head(dev, "change" if code in before else "add", _FIRST + code, _WHOLE)
        lines.append(f"{named} hfsc {real_time}ls rate {bps or link_bps // 100}bit ul rate {whole}")
        lines += [] if code in before else _filters(dev, code)
    return lines


def class_of(code: int) -> str:
    """As `tc class show` names it."""
    return f"{HANDLE:x}:{_FIRST + code:x}"


def _class(dev: str, verb: str, minor: int, parent: int, rate_bps: int, ceil_bps: int, prio: int) -> str:
    burst = max(_LEAST_BURST, round(ceil_bps / 8 * _BURST_S))
    return (
        f"{_head(dev, verb, minor, parent)} htb rate {rate_bps}bit ceil {ceil_bps}bit "
        f"prio {prio} burst {burst} cburst {burst} quantum {_LEAST_BURST}"
    )


def _head(dev: str, verb: str, minor: int, parent: int) -> str:
    above = f"{HANDLE:x}:{parent:x}" if parent else f"{HANDLE:x}:"
    return f"class {verb} dev {dev} parent {above} classid {HANDLE:x}:{minor:x}"


def _filters(dev: str, code: int) -> list[str]:
    octet, to = f"0x{code << 2:02x} 0xfc", f"flowid {class_of(code)}"
    head = f"filter add dev {dev} parent {HANDLE:x}: prio"
    return [
        f"{head} 1 protocol ip u32 match ip dsfield {octet} {to}",
        f"{head} 2 protocol ipv6 u32 match ip6 priority {octet} {to}",
    ]
