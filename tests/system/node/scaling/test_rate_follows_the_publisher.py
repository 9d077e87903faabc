"""`rate_hz`: the factor follows the publisher's rate; no duplicates, no disorder, and what is left out is no loss."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from ringcast.testing.waiting import drained

FRAME = np.zeros((4, 4), np.uint8)


class Metronome:
    """Sends at a pace that can be changed."""

    def __init__(self, pub, period_s):
        self.period_s = period_s
        self._pub = pub
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(self.period_s):
            self._pub.send(FRAME)

    def stop(self):
        self._stop.set()
        self._thread.join()


@pytest.fixture
def metronome():
    made = []

    def make(pub, period_s):
        made.append(Metronome(pub, period_s))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def gaps(messages):
    return [later.seq - earlier.seq for earlier, later in itertools.pairwise(messages)]


CASES = [("here", "publisher", None), ("here", "publisher", (2, 2)), ("here", "node:a", (2, 2)),
         ("there", "publisher", None), ("there", "subscriber", None), ("there", "subscriber", (2, 2)),
         ("there", "publisher", (2, 2)), ("there", "node:c", None), ("there", "node:c", (2, 2))]  # fmt: skip


def test_the_factor_grows_and_shrinks(make_mesh, eventually, metronome):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("camera", codec="image", depth=8192)
    eventually(lambda: b.knows("camera") and c.knows("camera"))
    subs = {
        case: (a if case[0] == "here" else b).session.subscribe("camera", at=case[1], size=case[2], rate_hz=20)
        for case in CASES
    }
    found = {case: [] for case in CASES}
    beat = metronome(pub, 0.004)

    def reached(wanted):
        for case, sub in subs.items():
            found[case] += drained(sub)
        return all(wanted(gaps(messages)[-2:]) for messages in found.values())

    eventually(lambda: reached(lambda last: len(last) == 2 and min(last) >= 4))
    beat.period_s = 0.04
    eventually(lambda: reached(lambda last: max(last) <= 3))
    for case, messages in found.items():
        assert all(gap > 0 for gap in gaps(messages)), case
        assert {msg.lost for msg in messages} == {0}, case
        assert {msg.data.shape for msg in messages} == {case[2] or (4, 4)}


def test_a_publisher_slower_than_the_rate_is_received_whole(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("slow", codec="image")
    eventually(lambda: b.knows("slow"))
    subs = [node.session.subscribe("slow", rate_hz=1e6, at=at) for node in (a, b) for at in ("publisher", "subscriber")]
    for _ in range(20):
        pub.send(FRAME)
    for sub in subs:
        assert [(msg.seq, msg.lost) for msg in (sub.recv(timeout=30) for _ in range(20))] == [(i, 0) for i in range(20)]
