"""What real receivers received, in the form of a simulated outcome: the same figures are computed from both. Pure.

`datagrams` and bytes are what left the nodes' network interfaces during the run, with Ethernet and IP headers and with
the traffic between daemons. A simulated run counts the transport's own datagrams without those headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringcast import _lab
from ringcast.lab.adamant.field.plan import PAYLOAD_BYTES, Contender
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.simulation.packet_loss import Outcome, Scenario


class Heard(NamedTuple):
    """What one receiver got, in the order of arrival."""

    seqs: Sequence[int]
    latencies_ns: Sequence[int]


class Sent(NamedTuple):
    """(packets, bytes) from the publisher's node and from the receivers', and the requests among the latter."""

    publisher: tuple[int, int]
    receivers: tuple[int, int]
    naks: int = 0
    late_ns: int = 0


def outcome(
    cell: Cell, contender: Contender, updates: int, heard: Sequence[Heard], first: int, sent: Sent
) -> Outcome:  # fmt: skip
    """Updates are those from `first` on; what came before them warmed up."""
    ticks = np.full((len(heard), updates), _lab.SIMULATED_NEVER, dtype=np.uint32)
    out_of_order = duplicates = 0
    for row, (seqs, latencies_ns) in zip(ticks, heard, strict=True):
        numbers = np.asarray(seqs, dtype=np.int64) - first
        counted = (numbers >= 0) & (numbers < updates)
        numbers = numbers[counted]
        units = np.asarray(latencies_ns, dtype=np.int64)[counted] // _lab.SIMULATED_UNIT_NS
        row[numbers] = np.clip(units, 0, _lab.SIMULATED_NEVER - 1)
        out_of_order += int((np.diff(numbers) < 0).sum())
        duplicates += int(numbers.size - np.unique(numbers).size)
    missing = [int((row == _lab.SIMULATED_NEVER).sum()) for row in ticks]
    raw = {
        "latency": ticks,
        # A receiver that was promised everything and has not got it has stalled; others reported what they lost.
        "unsettled": missing if contender.complete else [0] * len(heard),
        "gone": [0] * len(heard) if contender.complete else missing,
        "skipped": [],
        "gaps": [],
        "heard": [],
        "publisher": {"all": sent.publisher},
        "receivers": {"all": (sent.receivers[0] - sent.naks, sent.receivers[1]), "nak": (sent.naks, 0)},
        "out_of_order": out_of_order,
        "duplicates": duplicates,
        "events": 0,
        "grtt_ns": 0,
    }
    scenario = Scenario(
        transport=contender.name, multicast=contender.multicast, receivers=cell.receivers, loss=cell.loss,
        burst=cell.burst, rate_hz=cell.rate_hz, updates=updates, payload_bytes=PAYLOAD_BYTES,
    )  # fmt: skip
    return Outcome(scenario, raw)
