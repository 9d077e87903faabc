"""The daemon that keeps a tag places proxies: who has no place at once, others when a saving lasts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.control import service
from ringcast.control.placing import REPORT, Report, TagRate, Way
from ringcast.control.requests import SetChannel
from ringcast.control.status import NodeStatus
from ringcast.daemon.background import Background
from ringcast.daemon.placing.placer import Placing
from ringcast.daemon.placing.solving import Answer, Solving, by_rule
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BrokenError
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Setting, Wanted
from ringcast.placement.case import Case

ME, PUBLISHER, FORK, BEFORE = "n1", "p", "fork", "before"
LEAVES = ("x", "y", "z")
HOPS = {(PUBLISHER, ME): 1, (PUBLISHER, BEFORE): 1, (BEFORE, FORK): 1} | {(FORK, leaf): 1 for leaf in LEAVES}


class Mesh:
    """p - before - fork - x, y, z, and the keeper beside p. A node that is `silent` is here and does not answer."""

    def __init__(self) -> None:
        self.here = [ME, PUBLISHER, BEFORE, FORK, *LEAVES]
        self.silent: set[str] = set()
        self.hz = 100.0
        self.shares: dict[str, float] = {}

    def serve(self, name: str, handler: object) -> None:
        pass

    def nodes(self) -> list[NodeStatus]:
        return [
            NodeStatus(name=name, state="here", me=name == ME, linked=True, incarnation=1, control=(), data=())
            for name in self.here
        ]

    async def request(self, node: str, name: str, payload: bytes, timeout: float) -> bytes:
        assert name == REPORT
        if node in self.silent:
            raise TimeoutError
        rates = [TagRate("t", self.hz, 1000.0)] if node == PUBLISHER else []
        ways = [Way(b, self._hops(a, b), 0.001) for a in [node] for b in self.here if b > a]
        return service.encode(Report(node=node, rates=rates, ways=ways, cpu_share=self.shares.get(node)))

    def _hops(self, a: str, b: str) -> int:
        """Breadth first; who is not a daemon any more still forwards."""
        seen, layer, hops = {a}, {a}, 0
        while b not in seen:
            hops += 1
            layer = {y for pair in HOPS for x, y in (pair, pair[::-1]) if x in layer} - seen
            seen |= layer
        return hops


class Elsewhere:
    """Another node's rows, as this one hears of them."""

    def __init__(self, local: Any, name: str) -> None:
        self._local, self.table = local, TagTable(name, 1)
        local.table.set_present(name, True)

    def tell(self) -> list[Any]:
        changes = self._local.table.apply(self.table.delta(self._local.table.digest()))
        self._local.changed(changes)
        return list(changes)


class Keeper:
    def __init__(self, node: Any, mesh: Mesh) -> None:
        self.local, self.mesh = node.local, mesh
        node.join(1)
        node.open(1, "t")
        self.elsewhere = {name: Elsewhere(self.local, name) for name in (PUBLISHER, *LEAVES)}
        self.told: list[Any] = []

    def publish(self) -> None:
        info = PublisherInfo(id=1, node=PUBLISHER, tag="t", incarnation=9, pid=1, user="u")
        self.elsewhere[PUBLISHER].table.put(PublisherRow(info=info, depth=8, capacity_bytes=8192))
        self.told += self.elsewhere[PUBLISHER].tell()

    def subscribe(self, node: str, number: int = 1, **wanted: Any) -> None:
        info = SubscriberInfo(id=number, node=node, pattern="t", pid=1, user="u")
        self.elsewhere[node].table.put(SubscriberRow(info=info, wanted=Wanted(**({"every": 2} | wanted))))
        self.told += self.elsewhere[node].tell()

    def placed(self) -> dict[str, str]:
        row = self.local.table.tag("t")
        assert row is not None
        return {key: word.at for key, word in row.placed.items()}

    def why(self, key: str) -> str:
        return str(self.local.table.tag("t").placed[key].why)

    def look(self, times: int = 1, again: Any = None) -> None:
        """In a loop of its own; `again` is called between two looks."""

        async def looks() -> None:
            placing = Placing(self.local, self.mesh, _nowhere, list, lambda out: None, lambda: None, Background())  # type: ignore[arg-type]
            try:
                for number in range(times):
                    if number and again is not None:
                        again(placing)
                    await placing.look()
            finally:
                placing.close()

        asyncio.run(looks())


async def _nowhere(node: str) -> str:
    raise BrokenError(node)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole(self: Solving, case: Case) -> Answer:
        return by_rule(case)

    monkeypatch.setattr(Solving, "whole", whole)


@pytest.fixture
def keeper(node: Any) -> Keeper:
    found = Keeper(node, Mesh())
    found.publish()
    for leaf in LEAVES:
        found.subscribe(leaf)
    return found


def test_who_shares_a_way_gets_a_proxy_on_it(keeper: Keeper) -> None:
    keeper.look()
    assert keeper.placed() == {f"{leaf}#1": f"node:{FORK}" for leaf in LEAVES}
    assert keeper.why("x#1").startswith(f"t, x#1: on {FORK} (")
    assert "next best is" in keeper.why("x#1")


def test_the_next_best_when_the_node_is_gone(keeper: Keeper) -> None:
    keeper.look()
    keeper.mesh.here.remove(FORK)
    keeper.look()
    assert set(keeper.placed().values()) != {f"node:{FORK}"}
    assert all(f"its node {FORK} is gone; " in keeper.why(key) for key in keeper.placed())


def test_a_node_that_does_not_answer_is_not_gone(keeper: Keeper) -> None:
    keeper.look()
    keeper.mesh.silent.add(FORK)
    keeper.look()
    assert set(keeper.placed().values()) == {f"node:{FORK}"}


def test_one_who_comes_moves_nobody_else(keeper: Keeper) -> None:
    keeper.look()
    before = keeper.placed()
    keeper.subscribe("x", 2, every=3)
    keeper.look()
    assert before.items() <= keeper.placed().items()
    assert "x#2" in keeper.placed()


def test_a_better_plan_waits_whether_it_lasts(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.mesh.here.remove(FORK)
    keeper.look()
    before = keeper.placed()
    keeper.mesh.here.append(FORK)
    now = [1e9]

    def later(placing: Placing) -> None:
        if now[0] == 1e9:
            assert keeper.placed() == before
        now[0] += 6.0
        monkeypatch.setattr(placing._loop, "time", lambda: now[0])

    keeper.look(3, later)
    assert set(keeper.placed().values()) == {f"node:{FORK}"}
    assert keeper.why("x#1").startswith("the best places save ")


def test_what_others_decided_stays(keeper: Keeper) -> None:
    keeper.subscribe("y", at="subscriber")
    keeper.local.tags.set_channel(SetChannel(id=0, tag="t", node="z", at="publisher"))
    keeper.look()
    assert keeper.placed().keys() == {"x#1"}
    assert keeper.local.table.tag("t").settings == {"z": Setting(at="publisher")}


def test_nothing_is_placed_before_a_rate_is_known(keeper: Keeper) -> None:
    keeper.mesh.hz = 0.0
    keeper.look()
    assert keeper.placed() == {}


def test_a_node_without_cpu_to_spare_is_left_alone(keeper: Keeper) -> None:
    keeper.mesh.shares[FORK] = 0.0
    keeper.look()
    assert f"node:{FORK}" not in keeper.placed().values()
    assert keeper.placed().keys() == {f"{leaf}#1" for leaf in LEAVES}


def test_a_place_and_a_setting_end_with_their_subscriber(keeper: Keeper) -> None:
    keeper.look()
    keeper.local.tags.set_channel(SetChannel(id=0, tag="t", node="x#1", at="publisher"))
    elsewhere = keeper.elsewhere["x"]
    elsewhere.table.remove("sub:1")
    changes = elsewhere.tell()

    async def left() -> None:
        placing = Placing(keeper.local, keeper.mesh, _nowhere, list, lambda out: None, lambda: None, Background())  # type: ignore[arg-type]
        placing.changed(changes)
        await asyncio.sleep(0.3)
        placing.close()

    asyncio.run(left())
    assert "x#1" not in keeper.placed()
    assert keeper.local.table.tag("t").settings == {}


def test_without_a_wish_nothing_runs(keeper: Keeper) -> None:
    async def idle() -> None:
        placing = Placing(keeper.local, keeper.mesh, _nowhere, list, lambda out: None, lambda: None, Background())  # type: ignore[arg-type]
        placing.changed([change for change in keeper.told if isinstance(change.row, PublisherRow)])
        placing.look_soon()
        assert not placing._alarm.waiting
        placing.changed(keeper.told)
        assert placing._alarm.waiting
        placing.close()

    asyncio.run(idle())


def test_a_little_more_than_a_node_may_spend_moves_its_proxies(keeper: Keeper) -> None:
    # So little more that the plan for all counts as the same.
    keeper.mesh.shares[FORK] = 1e-5 * (100 + 50 + 3 * 50)  # receives, scales, sends to three
    keeper.look()
    assert set(keeper.placed().values()) == {f"node:{FORK}"}

    def faster(placing: Placing) -> None:
        keeper.mesh.hz = 101.0
        placing._not_before = 0.0

    keeper.look(2, faster)
    assert keeper.placed()
    assert f"node:{FORK}" not in keeper.placed().values()
    assert "carries more than it may" in keeper.why("x#1")


def test_who_finds_no_room_in_the_row_keeps_nobody_from_a_better_place(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringcast.daemon.placing.placer.MAX_PLACED_PER_TAG", 3)
    keeper.mesh.here.remove(FORK)
    keeper.look()
    assert len(keeper.placed()) == 3
    keeper.subscribe("x", 2, every=3)
    keeper.mesh.here.append(FORK)
    now = [1e9]

    def later(placing: Placing) -> None:
        now[0] += 6.0
        monkeypatch.setattr(placing._loop, "time", lambda: now[0])

    keeper.look(3, later)
    assert set(keeper.placed().values()) == {f"node:{FORK}"}
    assert "x#2" not in keeper.placed()
