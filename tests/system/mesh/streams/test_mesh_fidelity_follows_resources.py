"""A subscription with a range gets less while its reader or a deadline allows no more, is told, and gets more again."""

from __future__ import annotations

import itertools
import queue
import threading
from importlib import metadata

import numpy as np
import pytest

from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Cost, Costs

PERIOD_S = 0.02


class Beat:
    """Sends until it is stopped."""

    def __init__(self, pub, data):
        self._stop = threading.Event()
        self._pub, self._data = pub, data
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(PERIOD_S):
            self._pub.send(self._data)

    def stop(self):
        self._stop.set()
        self._thread.join()


@pytest.fixture
def beat():
    made = []

    def start(pub, data=b"x"):
        made.append(Beat(pub, data))

    yield start
    for one in made:
        one.stop()


class Reader:
    """Receives on a thread of its own; while `slow` is set it takes its time for each message."""

    def __init__(self, sub):
        self.slow, self._stop = threading.Event(), threading.Event()
        self.messages = []
        self._sub = sub
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            try:
                self.messages.append(self._sub.recv(timeout=0.1))
            except TimeoutError:
                continue
            if self.slow.is_set():
                self._stop.wait(0.15)

    def stop(self):
        self._stop.set()
        self._thread.join()


@pytest.fixture
def reader():
    made = []

    def start(sub):
        made.append(Reader(sub))
        return made[-1]

    yield start
    for one in made:
        one.stop()


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_reader_that_is_too_slow_gets_less_and_more_when_it_keeps_up(make_mesh, eventually, beat, reader, where):
    a, b = make_mesh(2)
    pub = a.session.publisher("camera", depth=4096)
    eventually(lambda: b.knows("camera"))
    sub = (a if where == "here" else b).session.subscribe("camera", rate_hz=(20, 40))
    assert sub.fidelity == (40.0, None, "")
    told = queue.SimpleQueue()
    with sub.on_fidelity(told.put):
        beat(pub)
        reading = reader(sub)
        reading.slow.set()
        less = told.get(timeout=60)
        assert 20 <= less.rate_hz < 40
        assert "late" in less.why
        assert sub.fidelity.rate_hz < 40
        if where == "there":
            eventually(lambda: [row.rate_hz for row in b.session.channels()] == [sub.fidelity.rate_hz])
            (row,) = b.session.channels()
            assert row.fidelity.startswith("20 to 40 Hz: ")
        reading.slow.clear()
        while not (now := sub.fidelity).best:
            told.get(timeout=60)
        assert now.rate_hz == 40
    before = len(reading.messages)
    eventually(lambda: len(reading.messages) > before + 10)
    numbers = [message.seq for message in reading.messages]
    assert all(later > earlier for earlier, later in itertools.pairwise(numbers))
    assert {message.lost for message in reading.messages} == {0}


def test_images_get_smaller_and_larger_again(make_mesh, eventually, beat, reader):
    a, b = make_mesh(2)
    pub = a.session.publisher("camera", codec="image", depth=4096)
    eventually(lambda: b.knows("camera"))
    subs = [b.session.subscribe("camera", size=((6, 6), (8, 8)), at=at) for at in ("publisher", "subscriber")]
    beat(pub, np.zeros((16, 16), np.uint8))
    readers = [reader(sub) for sub in subs]
    for one in readers:
        eventually(lambda one=one: one.messages and one.messages[-1].data.shape == (8, 8))
        one.slow.set()
    for one, sub in zip(readers, subs, strict=True):
        eventually(lambda sub=sub: not sub.fidelity.best, patience_s=60)
        one.slow.clear()
        eventually(lambda one=one: one.messages[-1].data.shape[0] < 8, patience_s=60)
        eventually(lambda sub=sub: sub.fidelity.best, patience_s=60)
        eventually(lambda one=one: one.messages[-1].data.shape == (8, 8), patience_s=60)
        numbers = [message.seq for message in one.messages]
        assert all(later > earlier for earlier, later in itertools.pairwise(numbers))


def test_another_ones_deadline_takes_some_and_gives_it_back(make_mesh, eventually, tmp_path):
    here = this_machine(metadata.version("ringcast"))
    slow = Costs(deliver=Cost(fixed_s=0.02))
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, slow, 0.0, "now", True))
    how = {"XDG_CACHE_HOME": str(tmp_path)}
    a, b = make_mesh(2, a=how, b=how)
    publisher = a.session.tag("camera").publisher(period_s=0.025, max_bytes=1000)
    eventually(lambda: b.knows("camera"))
    sub = b.session.tag("camera").subscribe(rate_hz=(2, 40), deadline_s=10.0)
    assert sub.fidelity.best
    told = queue.SimpleQueue()
    with sub.on_fidelity(told.put):
        arm = b.session.tag("arm").publisher(period_s=0.1, max_bytes=64)
        urgent = [b.session.tag("arm").subscribe(deadline_s=0.095) for _ in range(here.cores + 1)]
        less = told.get(timeout=60)
        assert 2 <= less.rate_hz < 40
        assert "deadline" in less.why
        late = b.session.tag("camera").subscribe(rate_hz=(2, 40), deadline_s=10.0)
        assert not late.fidelity.best  # at once, without a word
        late.close()
        for one in urgent:
            one.close()
        arm.close()
        while not sub.fidelity.best:
            told.get(timeout=60)
    publisher.close()


def test_another_ones_deadline_makes_images_smaller_and_larger_again(make_mesh, eventually, tmp_path, beat, reader):
    here = this_machine(metadata.version("ringcast"))
    slow = Costs(deliver=Cost(per_byte_s=2e-6))
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, slow, 0.0, "now", True))
    how = {"XDG_CACHE_HOME": str(tmp_path)}
    a, b = make_mesh(2, a=how, b=how)
    schema = {"dtype": "uint8", "shape": [100, 100]}
    pub = a.session.tag("camera", codec="numpy", schema=schema).publisher(period_s=0.025, max_bytes=10_100)
    eventually(lambda: b.knows("camera"))
    camera = b.session.tag("camera")
    sub = camera.subscribe(size=((10, 10), (100, 100)), deadline_s=10.0)
    assert sub.fidelity.best
    beat(pub, np.zeros((100, 100), np.uint8))
    reading = reader(sub)
    told = queue.SimpleQueue()
    with sub.on_fidelity(told.put):
        arm = b.session.tag("arm").publisher(period_s=0.1, max_bytes=10_000)
        urgent = [b.session.tag("arm").subscribe(deadline_s=0.095) for _ in range(here.cores + 1)]
        less = told.get(timeout=60)
        assert 10 <= less.size[0] < 100
        assert "deadline" in less.why
        eventually(lambda: reading.messages and reading.messages[-1].data.shape == sub.fidelity.size, patience_s=60)
        late = camera.subscribe(size=((10, 10), (100, 100)), deadline_s=10.0)
        assert not late.fidelity.best  # at once, without a word
        late.close()
        for one in urgent:
            one.close()
        arm.close()
        while not sub.fidelity.best:
            told.get(timeout=60)
    eventually(lambda: reading.messages[-1].data.shape == (100, 100), patience_s=60)
    numbers = [message.seq for message in reading.messages]
    assert all(later > earlier for earlier, later in itertools.pairwise(numbers))
