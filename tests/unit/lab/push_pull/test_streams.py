from __future__ import annotations

import pytest
from lab_fakes import named

from ringcast.lab.push_pull import streams


def test_streams_are_judged_by_messages_and_by_bytes():
    small, big = streams.SMALL.title, streams.BIG.title
    rates = {(small, "ringcast"): 3e6, (small, "peer"): 1e6, (big, "ringcast"): 900.0, (big, "peer"): 1000.0}
    findings = streams.conclude(rates, {})
    assert (named(findings, "messages per second between two nodes, reliable (tcp)").met) is True
    slow = named(findings, "bytes per second")
    assert slow.value == pytest.approx(900 * 2**20, rel=1e-3)
    assert slow.met is False
    packets = streams.conclude(rates, {}, streams.WITHOUT)
    assert all("packet by packet" in row.name for row in packets.rows)
    assert named(packets, "128 messages per call").met is False, "no rate"
    for rate, met in ((2.9e6, False), (3e6, True)):
        judged = streams.conclude({**rates, (streams.MANY.title, "ringcast"): rate}, {}, streams.WITHOUT)
        assert named(judged, "128 messages per call").met is met
    alone = streams.conclude({(small, "ringcast"): 3e6, (big, "ringcast"): 900.0}, {})
    assert all(row.met is None and row.reference is None for row in alone.rows)
