"""What other nodes say of themselves counts in the analysis; of those that say nothing little is assumed."""

import asyncio

import msgspec
import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import AdmissionError, Cost, Costs
from ringcast.control import service
from ringcast.control.placing import Way
from ringcast.control.status import ChannelEnvironment, ChannelStatus
from ringcast.daemon.admitting.capacities import CAPACITY, AskCapacity, Capacities, Capacity, lost_by_node
from ringcast.daemon.admitting.declared_system import LINK_RATE, declared_system, losses_in_a_row
from ringcast.daemon.background import Background
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BrokenError
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo

HERE = Calibration(Machine("p", 2, "k", "v"), Costs(publish=Cost(fixed_s=1e-5)), 1e-4, "now", True)
THERE = Capacity(cores=8, costs=Costs(receive=Cost(fixed_s=3e-5)), blocking_s=2e-4, link_bps=80_000_000)

LOST = {"b": 0.01, "c": 0.0}


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

        made = Capacities("a", mesh, ways, calibration, background, lambda: LOST)
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
    assert found.card("b") == 10_000_000  # what the administrator there said
    assert found.card("a") == 1.25e9  # what the interface that leads there says
    assert found.latency_s("b", "a") == 0.002
    assert (found.card("c"), found.latency_s("b", "c")) == (0.0, 0.0)


def test_a_node_that_does_not_answer_is_not_known():
    found, mesh = heard([subscriber("b", 0.1)], {})
    assert mesh.asked == [("b", CAPACITY)]
    assert found.of("b") is None
    assert (found.card("b"), found.latency_s("a", "b"), found.loss("b", "d")) == (0.0, 0.0, None)


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
    assert (nodes["a"].card, nodes["b"].card, nodes["c"].card) == (1.25e9, 10_000_000, LINK_RATE)
    assert {(link.a, link.b): link.bandwidth for link in system.links} == {
        ("a", "b"): 10_000_000, ("a", "c"): LINK_RATE, ("b", "c"): 10_000_000,
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
    assert mesh.to == {"b": ["a", "c"], "c": ["a", "b"]}
    assert found.latency_s("b", "c") == found.latency_s("c", "b") == 0.005
    assert found.latency_s("b", "d") == 0.0
    assert found.card("c") == 1e6  # what its administrator said
    assert found.card("b") == 1.0  # its slowest interface: it may be the one that is used


def test_this_node_measures_the_ways_that_it_is_asked_for():
    _, mesh = heard([], {"c": THERE, "d": THERE})
    answer = asyncio.run(mesh.services[CAPACITY]("b", service.encode(AskCapacity(to=["a", "c", "nobody"]))))
    assert [way.node for way in service.decode_untrusted(answer, Capacity).ways] == ["c"]


def test_what_channels_lost_counts_in_the_direction_that_is_worse():
    there = {"b": msgspec.structs.replace(THERE, losses={"a": 0.2, "c": 0.5}), "c": THERE, "d": THERE}
    found, mesh = heard([subscriber(node, 0.1) for node in "bcd"], there)
    assert found.loss("a", "b") == found.loss("b", "a") == 0.2
    assert found.loss("b", "c") == 0.5
    assert found.loss("a", "c") == 0.0  # measured, and nothing was lost
    assert found.loss("a", "d") is None
    answer = asyncio.run(mesh.services[CAPACITY]("b", service.encode(AskCapacity())))
    assert service.decode_untrusted(answer, Capacity).losses == LOST


@pytest.mark.parametrize(
    ("share", "losses"),
    [(None, 1), (0.0, 0), (1e-9, 1), (1e-6, 1), (1e-3, 2), (0.01, 3), (0.1, 6), (0.9, 16), (1.0, 16)],
)
def test_how_often_in_a_row_a_message_may_be_lost(share, losses):
    """So often that one in a million is lost more often; where nobody measured it, once."""
    assert losses_in_a_row(share) == losses


def test_the_worst_channel_from_a_node_says_what_is_lost_on_the_way():
    def channel(node, loss_percent):
        met = None if loss_percent is None else ChannelEnvironment(
            seconds=9.0, receivers=1, loss_percent=None if loss_percent < 0 else loss_percent, burst=None, rate_hz=1.0,
            payload_bytes=1.0, round_trip_us=None, bandwidth_left_mbit=None, cpu_left_percent=None,
        )  # fmt: skip
        return ChannelStatus(
            direction="in", node=node, tag="t", incarnation=1, transport="nak", every=1, reliable=False, messages=1,
            bytes=1, lost=0, counters={}, environment=met,
        )  # fmt: skip

    rows = [channel("b", 1.0), channel("b", 3.0), channel("c", 0.0), channel("d", -1), channel("e", None)]
    assert lost_by_node(rows) == {"b": 0.03, "c": 0.0}  # what tcp hides, and what nobody looked at, is not known
