"""What other nodes say of themselves counts in the analysis; of those that say nothing little is assumed."""

import asyncio

import msgspec
import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import AdmissionError, Cost, Costs
from ringcast.control import service
from ringcast.control.placing import Way
from ringcast.daemon.admitting.capacities import CAPACITY, AskCapacity, Capacities, Capacity
from ringcast.daemon.admitting.declared_system import LINK_RATE, declared_system
from ringcast.daemon.background import Background
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BrokenError
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo

HERE = Calibration(Machine("p", 2, "k", "v"), Costs(publish=Cost(fixed_s=1e-5)), 1e-4, "now", True)
THERE = Capacity(cores=8, costs=Costs(receive=Cost(fixed_s=3e-5)), blocking_s=2e-4, link_bps=80_000_000)


class Mesh:
    def __init__(self, answers):
        self.answers, self.asked, self.services, self.to = answers, [], {}, {}

    def serve(self, name, handler):
        self.services[name] = handler

    async def request(self, node, name, payload, timeout_s):
        self.asked.append((node, name))
        self.to[node] = service.decode_untrusted(payload, AskCapacity).to
        if node not in self.answers:
            raise BrokenError(f"{node} is gone")
        return service.encode(self.answers[node])


def publisher(node, said):
    info = PublisherInfo(id=1, node=node, tag="t", incarnation=1, pid=1, user="", program="")
    return PublisherRow(info=info, depth=1, capacity_bytes=1, declared=said)


def subscriber(node, deadline_s):
    info = SubscriberInfo(id=2, node=node, pattern="t", pid=1, user="", reliable=False, program="")
    return SubscriberRow(info=info, deadline_s=deadline_s)


def heard(rows, answers, calibration=lambda: HERE):
    """The capacities after the rows came from elsewhere, and all that was asked for is answered."""

    async def run():
        mesh, background = Mesh(answers), Background()

        async def ways(nodes):
            return [Way(node, 1, 0.004, 1.25e9) for node in nodes if node in answers]

        made = Capacities("a", mesh, ways, calibration, background)
        made.changed([Change(ChangeKind.ADDED, row) for row in rows])
        while made._asking or any(task is not asyncio.current_task() for task in asyncio.all_tasks()):
            await asyncio.sleep(0)
        return made, mesh

    return asyncio.run(run())


def test_nodes_that_declare_something_are_asked_once():
    said = Declared(0.1, 64)
    rows = [
        publisher("b", said),
        publisher("c", None),
        subscriber("b", 0.1),
        subscriber("d", 0.0),
        publisher("a", said),
    ]
    found, mesh = heard(rows, {"b": THERE})
    assert mesh.asked == [("b", CAPACITY)]
    assert found.of("b") == THERE
    assert found.of("c") is None
    assert found.way("b", "a") == (10_000_000, 0.002)  # what the administrator there said is less than the card's
    assert found.way("b", "c") == (0.0, 0.0)


def test_a_node_that_does_not_answer_is_not_known():
    found, mesh = heard([subscriber("b", 0.1)], {})
    assert mesh.asked == [("b", CAPACITY)]
    assert found.of("b") is None
    assert found.way("a", "b") == (0.0, 0.0)


def test_what_is_known_is_what_is_judged():
    table = TagTable("a", 1)
    table.open_tag("t", {}, create=True)
    table.put(publisher("a", Declared(0.1, 64)))
    found, _ = heard([subscriber("b", 0.1)], {"b": THERE})
    system = declared_system(table, HERE, [], [subscriber("b", 0.1), subscriber("c", 0.1)], found)
    nodes = {node.name: node for node in system.nodes}
    assert (nodes["a"].cores, nodes["b"].cores, nodes["c"].cores) == (2, 8, 1)
    assert nodes["b"].costs == THERE.costs
    assert nodes["c"].costs is None
    assert {(link.a, link.b): link.bandwidth for link in system.links} == {
        ("a", "b"): 10_000_000, ("a", "c"): LINK_RATE, ("b", "c"): LINK_RATE,
    }  # fmt: skip


def test_this_node_says_what_its_calibration_has_or_that_it_has_none():
    def missing():
        raise AdmissionError("costs", "run 'ringcast admit --calibrate'")

    _, mesh = heard([], {})
    answer = asyncio.run(mesh.services[CAPACITY]("b", service.encode(AskCapacity())))
    assert service.decode_untrusted(answer, Capacity).cores == 2
    _, mesh = heard([], {}, missing)
    with pytest.raises(BrokenError, match="--calibrate"):
        asyncio.run(mesh.services[CAPACITY]("b", service.encode(AskCapacity())))


def test_the_way_between_two_others_is_what_they_measured():
    ways = [Way("c", 2, 0.010, 2e6), Way("x", 1, 0.5, 1.0)]
    there = {"b": msgspec.structs.replace(THERE, ways=ways), "c": msgspec.structs.replace(THERE, link_bps=8_000_000)}
    found, mesh = heard([subscriber("b", 0.1), subscriber("c", 0.1)], there)
    assert mesh.to == {"b": ["c"], "c": ["b"]}
    assert found.way("b", "c") == found.way("c", "b") == (1e6, 0.005)  # what the administrator of c said is least
    assert found.way("b", "d") == (0.0, 0.0)


def test_this_node_measures_the_ways_that_it_is_asked_for():
    _, mesh = heard([], {"c": THERE, "d": THERE})
    answer = asyncio.run(mesh.services[CAPACITY]("b", service.encode(AskCapacity(to=["a", "c", "nobody"]))))
    assert [way.node for way in service.decode_untrusted(answer, Capacity).ways] == ["c"]
