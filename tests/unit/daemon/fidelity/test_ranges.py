"""What admission allows is computed anew when something that it depends on changes, and only then."""

from types import SimpleNamespace

from ringcast.daemon.fidelity.ranges import Ranges
from ringcast.model.declared import Declared


class Others:
    def __init__(self):
        self.said = {}

    def of(self, node):
        return self.said.get(node)

    def card(self, node):
        return 0.0

    def latency_s(self, a, b):
        return self.said.get((a, b), 0.0)


class Computed:
    def __init__(self):
        self.times = 0
        self.others = Others()

    def allowed(self):
        self.times += 1
        return {}


def row(owner):
    declared = Declared(period_s=0.1, max_bytes=100)
    info = SimpleNamespace(incarnation=7, tag="t", id=1)
    wanted = SimpleNamespace(range_hz=None, range_size=None, every=1, rate_hz=0.0, size=None)
    return SimpleNamespace(owner=owner, info=info, declared=declared, alive=True, deadline_s=0.2, wanted=wanted)


def test_an_answer_that_comes_late_counts():
    admitting = Computed()
    table = SimpleNamespace(
        all_publishers=lambda: [row("far")], subscribers=lambda tag: [row("here")], pulls=lambda tag: []
    )
    ranges = Ranges(SimpleNamespace(table=table, admitting=admitting), None, None)
    ranges._settle()
    ranges._settle()
    assert admitting.times == 1
    admitting.others.said["far"] = "four cores"
    ranges._settle()
    assert admitting.times == 2
    admitting.others.said["here", "far"] = (1e6, 0.01)
    ranges._settle()
    ranges._settle()
    assert admitting.times == 3
