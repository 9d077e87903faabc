"""Kernels are asked for a schedule that is new, and not for one that is in force already."""

import asyncio
from types import SimpleNamespace

from ringcast.control import service
from ringcast.control.requests import SetChannel
from ringcast.control.service import Granted
from ringcast.daemon.priority.agreement import Agreement
from ringcast.model.place import Setting


class Mesh:
    def __init__(self):
        self.asked = []

    def serve(self, name, handler):
        pass

    async def request(self, node, name, payload, timeout_s):
        self.asked.append((node, name))
        return service.encode(Granted(warnings=[f"from {node}"]))


def agreement(mesh, settings):
    table = SimpleNamespace(
        node="a",
        tag=lambda name: SimpleNamespace(settings=settings),
        publishers=lambda name: [SimpleNamespace(owner="a", alive=True)],
        subscribers=lambda name: [SimpleNamespace(owner="b")],
    )
    return Agreement(table, mesh, None, None, lambda tag, sched: [])


def check(settings, **request):
    mesh = Mesh()
    said = asyncio.run(agreement(mesh, settings).check(SetChannel(id=1, tag="t", **request)))
    return mesh.asked, said


def test_both_ends_are_asked():
    asked, said = check({}, sched="deadline:1ms/5ms")
    assert asked == [("a", service.GRANT), ("b", service.GRANT)]
    assert said == ["from a", "from b"]


def test_a_schedule_that_is_in_force_is_not_asked_for_again():
    assert check({"": Setting(priority="high deadline:1ms/5ms")}, sched="deadline:1ms/5ms") == ([], [])


def test_that_of_another_node_is_asked_for():
    asked, _ = check({"c": Setting(priority="deadline:1ms/5ms")}, node="b", sched="deadline:1ms/5ms")
    assert asked == [("a", service.GRANT), ("b", service.GRANT)]


def test_senders_are_asked_for_a_bandwidth():
    asked, _ = check({}, priority="high", bandwidth="5mbit")
    assert asked == [("a", service.GRANT)]


def test_a_bandwidth_that_is_reserved_is_not_asked_for_again():
    assert check({"": Setting(priority="high bandwidth:5mbit")}, bandwidth="5mbit") == ([], [])


def test_a_class_needs_nobody():
    assert check({}, priority="high") == ([], [])
