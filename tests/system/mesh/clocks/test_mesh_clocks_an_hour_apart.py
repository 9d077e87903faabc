"""Nodes whose clocks disagree by an hour: nothing waits for the time of day, nothing is thrown away because of it, and
what is told of times is by the reader's clock.

The clocks are those of the daemons' and programs' own processes (RINGCAST_CLOCK_AHEAD_S): on Linux all namespaces share
the time of day.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest

HOUR_S = 3600
HOUR_NS = HOUR_S * 10**9

PUBLISHER = """
    import os, ringcast
    session = ringcast.connect(start=False)
    pub = session.publisher("clock", codec="json")
    print("up")
    while line := input():
        pub.send(int(line))
        print("sent")
"""


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def test_a_publisher_whose_clock_is_an_hour_off(
    ahead_s: int, make_mesh: Any, run_program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., None], take: Callable[..., list[Any]],
) -> None:  # fmt: skip
    a, b = make_mesh(2, a={"RINGCAST_CLOCK_AHEAD_S": str(ahead_s)})
    monkeypatch.setenv("RINGCAST_CLOCK_AHEAD_S", str(ahead_s))
    program = run_program(PUBLISHER, a.daemon.socket_path)
    program.expect("up")
    eventually(lambda: b.knows("clock"))
    subs = [b.session.subscribe("clock"), b.session.subscribe("clock", reliable=True)]
    here = b.session.publisher("clock")
    for number in range(3):
        program.tell(str(number))
        program.expect("sent")
        eventually(lambda: all(sub.latest is not None for sub in subs))
    for sub in subs:
        got = take(sub, 2)
        assert [(msg.data, msg.lost) for msg in got] == [(0, 0), (1, 0), (2, 0)]
        assert abs(got[-1].sent_ns - time.time_ns()) < HOUR_NS // 2, "the time of sending is translated"
        bound_ns = b.session.clock("a").bound_ns
        for msg in got:
            assert msg.event_ns == msg.sent_ns
            assert msg.received_ns - msg.sent_ns >= -bound_ns, "nothing was received before it was sent"
            assert msg.sent_ns <= msg.arrived_ns + bound_ns
            assert msg.arrived_ns <= msg.received_ns
            assert msg.kernel_ns <= msg.arrived_ns
        stats = sub.stats()
        assert stats.received == 3
        assert stats.lost == 0

    here.send(77)
    history = b.session.tag("clock", create=False).history()
    assert history.latest().data == 77, "of two publishers the newest, whatever their clocks show"
    assert 0 < history.staleness_s() <= math.inf
    there = b.session.tag("clock", create=False).history(at="publisher")
    assert there.latest(back=1).data == 2
    assert abs(there.latest(back=1).sent_ns - time.time_ns()) < HOUR_NS // 2, "what is pulled is translated too"
    assert there.before(time.time_ns()).data == 77
    assert [msg.data for msg in there.between(time.time_ns() - HOUR_NS // 2, time.time_ns())] == [0, 1, 2, 77]
    (row,) = b.incoming(transport="nak")
    assert row.lost == 0

    # A daemon that starts again, with a clock set right, is not taken for an older life of itself.
    a.session.close()
    a.kill()
    a.daemon._environment.pop("RINGCAST_CLOCK_AHEAD_S")
    a.restart()
    a.session = a.connect()
    eventually(lambda: a.here() == b.here() == {"a", "b"})
    eventually(lambda: b.incoming(transport="nak") and b.incoming(transport="tcp"))
    program.tell("3")
    program.expect("sent")
    for sub in subs:
        assert take(sub, 3)[-1].lost == 0
