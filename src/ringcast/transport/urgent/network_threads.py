"""Threads that carry a node's packets from and to its network card, and which schedules would run before them. Pure.

A channel's thread that never lets the card's threads run waits for packets that it keeps from coming: paper 003 chose
a priority below those of network interrupts. Only kernels with threaded interrupts or threaded polling have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ringcast.model.schedule import DEADLINE, FIFO, OTHER, RR, Schedule

_WORDS = (
    "eth", "en", "wl", "mlx", "virtio", "ixgbe", "i40e", "iavf", "ice-", "igb", "igc", "e1000", "bnx", "tg3", "r816",
    "rtl", "ena", "gve", "vmxnet", "nic", "nfp", "qed", "sfc", "aq_", "atlantic", "alx", "atl", "sky2", "fec", "stmmac",
    "macb", "mvneta", "mvpp2", "dwc-eth", "cpsw", "iwlwifi", "ath", "rtw", "mt7", "brcm", "b43", "mwifiex", "rsi",
)  # fmt: skip
"""How interrupts of cards are called: by the interface, or by the driver, as those of wireless cards are."""


class Task(NamedTuple):
    """A thread as the process table has it."""

    pid: int
    name: str
    policy: str = OTHER
    priority: int = 0


def network_tasks(tasks: Iterable[Task], interrupts: Collection[int] = ()) -> list[Task]:
    """Those that carry packets: interrupts of cards (`irq/30-eth0`, or by their numbers), polling (`napi/eth0-1`), soft
    interrupts."""
    found = []
    for task in tasks:
        kind, _, rest = task.name.partition("/")
        number, _, of = rest.partition("-")
        known = number.isdecimal() and int(number) in interrupts
        interrupt = kind == "irq" and (known or any(of.startswith(word) for word in _WORDS))
        if interrupt or kind in ("napi", "ksoftirqd", "ktimers", "ktimersoftd"):
            found.append(task)
    return found


def preempted(wanted: Schedule, tasks: Iterable[Task], interrupts: Collection[int] = ()) -> list[Task]:
    """Threads of the card with a real-time policy of their own, which a thread of that schedule would keep from
    running. Those of the usual policy yield to every real-time thread anyway, and kernels plan for that."""
    if wanted.policy not in (FIFO, RR, DEADLINE):
        return []
    real_time = [task for task in network_tasks(tasks, interrupts) if task.policy in (FIFO, RR)]
    return [task for task in real_time if wanted.policy == DEADLINE or wanted.priority >= task.priority]


def warning(wanted: Schedule, tasks: Iterable[Task], where: str, interrupts: Collection[int] = ()) -> str:
    """In words what such threads would hold up there; '' when nothing."""
    concerned = preempted(wanted, tasks, interrupts)
    if not concerned:
        return ""
    least = min(task.priority for task in concerned)
    names = ", ".join(sorted({task.name for task in concerned})[:3])
    fix = f"choose a priority below {least}" if wanted.policy != DEADLINE and least > 1 else "keep its runtime short"
    return f"{wanted.text} on {where} runs before the network card's own threads ({names}): {fix}"
