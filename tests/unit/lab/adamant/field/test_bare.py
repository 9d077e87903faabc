"""What the framework costs beside bare multicast sockets."""

from __future__ import annotations

import threading
from typing import Any

from lab_fakes import named

from ringcast.lab.adamant.field import bare
from ringcast.lab.measuring.datagrams import Listener, Multicaster


def test_each_block_is_compared_with_its_neighbour() -> None:
    blocks = {bare.OURS: [[3_000.0] * 3, [300.0] * 3, [30.0] * 3], bare.BARE: [[2_000.0] * 3, [200.0] * 3, [10.0] * 3]}
    found = bare.conclude(blocks)
    assert named(found, "cost of the framework").value == 1.5
    assert [row[0] for row in found.tables[0].rows] == [bare.OURS, bare.BARE]


def test_bare_sockets_hear_each_other() -> None:
    """On the loop-back, where a multicast is not lost unless a buffer is full."""
    listener, sender = Listener("127.0.0.1"), Multicaster("127.0.0.1")
    heard: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: heard.append(listener.record(last=9, limit_s=30.0)))
    thread.start()
    sender.publish(10, rate_hz=1_000.0, size=12)
    thread.join()
    sender.close()
    listener.close()
    assert heard[0]["seqs"] == list(range(10))
    assert all(ns >= 0 for ns in heard[0]["latencies_ns"])
