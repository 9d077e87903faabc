"""A wildcard that wants the best stream only: it changes over when a better one sends, and back when that leaves."""

from __future__ import annotations

import itertools
import threading

import pytest

from ringcast.qos import Profile
from ringcast.testing.waiting import drained


class Beat:
    """Sends numbers until it is stopped; `sent` has the time of each message by its number."""

    def __init__(self, pub):
        self._stop = threading.Event()
        self._pub = pub
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(0.005):
            self._pub.send(b"x")

    def stop(self):
        self._stop.set()
        self._thread.join()


@pytest.fixture
def beat():
    made = []

    def start(pub):
        made.append(Beat(pub))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def camera(node, name, fidelity):
    return node.session.tag(f"cam/{name}", depth=16384).publisher(profile=Profile(name=name, fidelity=fidelity))


def follow(sub, found, tag):
    """Receive until a message of that tag comes."""
    found.extend(drained(sub))
    return found and found[-1].tag == tag


def check(found):
    """Every stretch of time is covered by one tag, and within it nothing is missing, twice or out of order."""
    stays = [list(stay) for _, stay in itertools.groupby(sorted(found, key=lambda m: m.sent_ns), key=lambda m: m.tag)]
    for stay in stays:
        numbers = [message.seq for message in stay]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {message.lost for message in found} == {0}
    return [stay[0].tag for stay in stays]


@pytest.mark.parametrize("where", ["here", "there"])
def test_it_changes_over_and_back(make_mesh, eventually, beat, where):
    a, b = make_mesh(2)
    middle = camera(a, "middle", 2)
    beat(middle)
    eventually(lambda: b.knows("cam/middle"))
    sub = (a if where == "here" else b).session.subscribe("cam/*", only_best=True)
    found = []
    eventually(lambda: follow(sub, found, "cam/middle"))
    worse = camera(a, "worse", 1)
    beat(worse)
    better = camera(a, "better", 3)
    eventually(lambda: b.knows("cam/better") and b.knows("cam/worse"))
    count = len(found)
    eventually(lambda: follow(sub, found, "cam/middle") and len(found) > count + 20)  # which has sent nothing yet
    sending = beat(better)
    eventually(lambda: follow(sub, found, "cam/better"))
    if where == "there":
        eventually(lambda: {row.tag for row in b.session.channels()} == {"cam/better"})  # no other is paid for
    sending.stop()
    better.close()
    eventually(lambda: follow(sub, found, "cam/middle"))
    again = camera(a, "better", 3)
    beat(again)
    eventually(lambda: follow(sub, found, "cam/better"))
    assert check(found) == ["cam/middle", "cam/better", "cam/middle", "cam/better"]
    assert sub.lost == 0


def test_the_node_of_the_best_one_dies(make_mesh, eventually, beat):
    a, b, c = make_mesh(3)
    poor, good = camera(a, "poor", 1), camera(c, "good", 2)
    beat(poor)
    sending = beat(good)
    eventually(lambda: b.knows("cam/poor") and b.knows("cam/good"))
    sub = b.session.subscribe("cam/*", only_best=True)
    found = []
    eventually(lambda: follow(sub, found, "cam/good"))
    c.kill()
    eventually(lambda: follow(sub, found, "cam/poor"))
    c.restart()
    eventually(lambda: follow(sub, found, "cam/good"), patience_s=60)
    sending.stop()


def test_it_is_for_wildcards_that_may_leave_messages_out(make_mesh):
    (a,) = make_mesh(1)
    with pytest.raises(ValueError, match="for a wildcard"):
        a.session.subscribe("cam/a", only_best=True)
    with pytest.raises(ValueError, match="not with reliable"):
        a.session.subscribe("cam/*", only_best=True, reliable=True)
