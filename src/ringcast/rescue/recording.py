"""A mission as rows: what a recorder would have written (`bronze.messages`), and apart from it the truth.

The network between is part of it: packets are lost, messages come late or twice, and every publisher stamps times by
its own clock. Rows are plain dictionaries, so that this needs neither Spark nor Arrow.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ringcast.codec import find
from ringcast.rescue.mission import Mission

PACKET_BYTES = 1400


def bronze_rows(mission: Mission) -> Iterator[dict[str, Any]]:
    """Received messages in the order of their arrival, with the columns of `bronze.messages`."""
    settings = mission.settings
    random = np.random.default_rng([settings.seed, 99])
    encoders = {name: find(name).bind(None).encode for name in ("json", "msgpack", "numpy")}
    numbers: dict[str, int] = {}
    missed: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    for sent in mission.messages():
        encode = encoders[sent.codec]
        assert encode is not None
        payload = encode(sent.value)
        data = b"".join(map(bytes, payload)) if isinstance(payload, tuple) else bytes(payload)
        seq = numbers.get(sent.tag, 0)
        numbers[sent.tag] = seq + 1
        packets = math.ceil(len(data) / PACKET_BYTES)
        late, chance, twice = random.exponential(400_000), random.random(), random.random()
        if chance > (1 - settings.loss) ** packets:
            missed[sent.tag] = missed.get(sent.tag, 0) + 1
            continue
        true_ns = settings.begin_ns + sent.at_ns
        event_ns = true_ns + settings.skew_of(sent.node)
        received_ns = true_ns + 220_000 + round(late) + 30_000 * packets
        row = {
            "tag": sent.tag, "publisher": f"{sent.node}/1/1", "incarnation": f"{settings.seed:016x}",
            "node": sent.node, "seq": seq, "every": 1, "event_time": _time(event_ns), "event_ns": event_ns,
            "sent_ns": event_ns + 20_000, "received_ns": received_ns,
            "lost": missed.pop(sent.tag, 0), "discardable": False, "codec": sent.codec, "schema_id": None,
            "payload": data,
        }  # fmt: skip
        rows.append(row)
        if twice < settings.duplicates:
            rows.append({**row, "received_ns": received_ns + 3_000_000, "lost": 0})
    yield from sorted(rows, key=lambda row: row["received_ns"])


def clock_rows(mission: Mission) -> list[dict[str, Any]]:
    """What a clock service that measured well would say: `clocks` for every node."""
    nodes = {f"uav{n}{part}" for n in range(mission.settings.uavs) for part in ("", "-camera")}
    nodes |= {f"street{n}" for n in range(mission.settings.cameras)}
    return [
        {"node": node, "from_ns": 0, "offset_ns": mission.settings.skew_of(node), "drift_ppb": 0.0, "bound_ns": 1000}
        for node in sorted(nodes)
    ]


def truth_rows(mission: Mission, tick_ns: int = 100_000_000) -> list[dict[str, Any]]:
    """Where every survivor was in the middle of every tick, and how many sensors could see it. Never an input."""
    rows = []
    for k in range(int(mission.settings.seconds * 1e9) // tick_ns):
        at = k * tick_ns + tick_ns // 2
        for thing, place, uavs, cameras in mission.seen(at):
            rows.append(
                {
                    "event_ns": mission.settings.begin_ns + at, "survivor": thing.name, "x": float(place[0]),
                    "y": float(place[1]), "z": float(place[2]), "uavs": uavs, "cameras": cameras,
                }
            )  # fmt: skip
    return rows


def _time(ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ns // 1_000_000_000, dt.UTC) + dt.timedelta(microseconds=ns // 1000 % 1_000_000)
