"""Kernels are asked for a schedule that is new, and not for one that is in force already."""

import asyncio
from types import SimpleNamespace

import pytest

from ringcast.control import service
from ringcast.control.requests import SetChannel
from ringcast.control.service import Grant, Granted
from ringcast.control.status import ChannelStatus, InForce
from ringcast.daemon.priority import agreement as agreement_module
from ringcast.daemon.priority.agreement import Agreement, refused
from ringcast.model import priority
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


def test_a_class_with_a_reserved_bandwidth_is_asked_for():
    """Its code point gets another class of the queues."""
    reserved = {"": Setting(priority="high bandwidth:5mbit")}
    assert check(reserved, priority="critical")[0] == [("a", service.GRANT)]
    assert check(reserved, priority="high")[0] == []


def granted(**request):
    """What a sender answers."""
    served = {}
    mesh = SimpleNamespace(serve=served.__setitem__)
    publisher = SimpleNamespace(info=SimpleNamespace(incarnation=5))
    table = SimpleNamespace(node="a", publishers=lambda tag: [publisher])

    async def host_of(node):
        return "127.0.0.1"

    Agreement(table, mesh, None, host_of, lambda tag, words: [])
    return asyncio.run(served[service.GRANT]("b", service.encode(Grant(**request))))


def test_a_reserved_channel_does_not_become_a_normal_one(monkeypatch):
    checked = []
    monkeypatch.setattr(agreement_module, "LINKS", SimpleNamespace(check=lambda *args: checked.append(args)))
    granted(tag="t", priority="normal bandwidth:5mbit", to=["b"])
    assert checked == [("127.0.0.1", 0, 5_000_000, {(5, "127.0.0.1")})]


def row(text, direction="out", **has):
    return ChannelStatus(
        direction=direction, node="b", incarnation=5, tag="t", transport="udp", every=1, size=None, rate_hz=0.0,
        reliable=False, priority=text, in_force=InForce(**has), messages=0, bytes=0, lost=0, counters={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ([row("fifo:3", sched="other", refused="no right")], "fifo:3", ["no right"]),
        ([row("fifo:3", sched="fifo:3", refused="no memory")], "fifo:3", []),
        ([row("fifo:4", sched="other", refused="no right")], "fifo:3", []),
        ([row("high bandwidth:5mbit", refused="full")], "bandwidth:5mbit", ["full"]),
        ([row("high bandwidth:5mbit", bandwidth="5mbit", refused="no memory")], "bandwidth:5mbit", []),
        ([row("high bandwidth:5mbit", direction="in", refused="no memory")], "bandwidth:5mbit", []),
        ([row("high bandwidth:5mbit", refused="full")], "", []),
        ([row("bandwidth:5mbit", refused="full; other", lost="full")] * 2, "", ["full"]),
    ],
)
def test_why_a_setting_is_taken_back(rows, words, said):
    assert refused(rows, priority.read(words)) == said
