"""Membership, gossip and the tag table together, on many simulated nodes, through everything a network can do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.control.peering import MAX_FRAME_BYTES
from ringcast.daemon.mesh.core.events import NameCleared, NameConflict, NodeDown, NodeRestarted, NodeUp, TagContest
from ringcast.daemon.table.pages import PAGE_BYTES
from ringcast.daemon.table.rows import Change, PublisherRow, SubscriberRow, publisher_key
from ringcast.daemon.table.table import TagTable
from ringcast.lab.simulation.agreement import measure, rows
from ringcast.lab.simulation.many_nodes import MeshSimulation, SimulatedNode
from ringcast.model.identity import PublisherInfo, SubscriberInfo

PATIENCE_S = 120.0
"""Of virtual time; nothing depends on how much of it is needed."""


def tag(name: str, **attributes: object) -> Callable[[TagTable], list[Change]]:
    return lambda table: table.open_tag(name, attributes)[1]


def publisher_row(node: str, number: int, name: str = "lab/temp") -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=name, incarnation=number + 1, pid=1, user="u")
    return PublisherRow(info=info, depth=8, capacity_bytes=4096)


def publisher(number: int, name: str) -> Callable[[TagTable], list[Change]]:
    return lambda table: table.put(publisher_row(table.node, number, name))


def subscriber(number: int, pattern: str) -> Callable[[TagTable], list[Change]]:
    def write(table: TagTable) -> list[Change]:
        return table.put(
            SubscriberRow(info=SubscriberInfo(id=number, node=table.node, pattern=pattern, pid=1, user="u"))
        )

    return write


def mesh(count: int, seed: int = 1, **options: object) -> MeshSimulation:
    """Nodes n0, n1... that found each other through n0."""
    sim = MeshSimulation(seed=seed, through_wire=True, **options)  # type: ignore[arg-type]
    for number in range(count):
        sim.start(f"n{number}", ["n0"] if number else [])
    settle(sim)
    return sim


def settle(sim: MeshSimulation) -> None:
    assert sim.run_until(sim.agree, PATIENCE_S, every_s=0.01)


def seen(node: SimulatedNode, kind: type) -> list[object]:
    return [action for action in node.seen if isinstance(action, kind)]


def view(node: SimulatedNode) -> object:
    """What a node's clients see."""
    tags = node.table.tags()
    rows = sorted((p.info.node, p.info.id, p.alive) for row in tags for p in node.table.publishers(row.name))
    return tags, rows, sorted({*node.cluster.membership.names.holders, node.name})


def assert_quiet(sim: MeshSimulation) -> None:
    """Nodes that agree only ping and compare sums."""
    sim.run(1.0)
    before = sum(messages for messages, _ in sim.sent.values())
    sim.run(10.0)
    after = sum(messages for messages, _ in sim.sent.values())
    assert after - before <= 10 * 6 * len(sim.running())
    assert sim.agree()


def assert_same_view(sim: MeshSimulation) -> None:
    views = [view(node) for node in sim.running()]
    assert all(other == views[0] for other in views)
    assert all(node.largest_bytes <= MAX_FRAME_BYTES for node in sim.nodes.values())


@pytest.mark.parametrize("count", [2, 10, 16, 17, 40])
def test_nodes_that_know_one_find_all(count: int) -> None:
    sim = mesh(count)
    assert_same_view(sim)
    for node in sim.running():
        assert len(node.cluster.membership.names.holders) == count - 1
    assert_quiet(sim)


def test_a_chain_of_seeds_suffices() -> None:
    sim = MeshSimulation(seed=3)
    for number in range(12):
        sim.start(f"n{number}", [f"n{number - 1}"] if number else [])
    settle(sim)


def test_a_change_reaches_ten_nodes_in_one_step() -> None:
    sim = mesh(10, latency_ms=(1.0, 1.0))
    before_ns = sim.now_ns
    sim.change("n3", tag("lab/temp"))
    sim.run(0.0011)
    assert sim.agree()
    assert_same_view(sim)
    assert sim.nodes["n7"].table.tag("lab/temp") is not None
    assert sim.now_ns - before_ns == 1_100_000


@pytest.mark.parametrize("silently", [False, True])
@pytest.mark.parametrize("count", [2, 5, 30])
def test_a_killed_node_is_noticed_and_its_rows_withdrawn_until_it_returns(count: int, silently: bool) -> None:
    sim = mesh(count)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1", silently=silently)
    settle(sim)
    others = sim.running()
    assert all(not node.table.publishers("lab/temp") for node in others)
    assert all(seen(node, NodeDown) for node in others)
    sim.start("n1", ["n0"])
    settle(sim)
    assert all(not node.table.publishers("lab/temp") for node in sim.running()), "that was its earlier life"
    sim.change("n1", publisher(7, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [7] for node in sim.running())
    assert_same_view(sim)


def test_a_node_that_says_goodbye_is_gone_at_once() -> None:
    sim = mesh(6, latency_ms=(1.0, 1.0))
    sim.stop("n2")
    sim.run(0.01)
    assert sim.agree()
    assert len(sim.running()) == 5


def test_a_node_that_restarts_at_once_is_a_new_one() -> None:
    sim = mesh(5)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1")
    sim.start("n1", ["n0"])
    settle(sim)
    assert all(not node.table.publishers("lab/temp") for node in sim.running())
    assert any(seen(node, NodeRestarted) or seen(node, NodeDown) for node in sim.running())


@pytest.mark.parametrize("clock_s", [0, -3600])
def test_a_node_that_returns_with_its_old_number_outlives_what_is_known_of_it(clock_s: int) -> None:
    sim = mesh(4)
    for number in range(3):
        sim.change("n1", publisher(number, "lab/temp"))
    settle(sim)
    sim.kill("n1", silently=True)
    sim.nodes["n1"].skew_ns += clock_s * 10**9
    sim.start("n1", ["n0"], old_identity=True)
    sim.change("n1", publisher(9, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [9] for node in sim.running())


def test_a_clock_set_back_by_an_hour_between_two_lives_changes_nothing() -> None:
    sim = mesh(4)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1")
    sim.nodes["n1"].skew_ns -= 3600 * 10**9
    sim.start("n1", ["n0"])
    sim.change("n1", publisher(2, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [2] for node in sim.running())


@pytest.mark.parametrize("count", [6, 40])
def test_a_partition_heals_by_itself(count: int) -> None:
    sim = mesh(count)
    half = [f"n{number}" for number in range(count // 2)]
    sim.change("n0", publisher(1, "lab/a"))
    sim.change(f"n{count - 1}", publisher(1, "lab/b"))
    settle(sim)
    sim.partition(half)
    for name in half:
        sim.nodes[name].side = 1
    sim.run(60.0)
    assert not sim.nodes["n0"].table.publishers("lab/b")
    assert not sim.nodes[f"n{count - 1}"].table.publishers("lab/a")
    sim.change("n0", publisher(2, "lab/a"))
    sim.heal()
    settle(sim)
    for node in sim.running():
        assert len(node.table.publishers("lab/a")) == 2
        assert len(node.table.publishers("lab/b")) == 1
    assert_same_view(sim)
    assert_quiet(sim)


def test_a_partition_heals_without_any_seed() -> None:
    sim = mesh(3)
    for node in sim.running():
        node.cluster.membership._calls._seeds.clear()
    sim.partition(["n0"], ["n1"], ["n2"])
    sim.run(60.0)
    assert [len(node.cluster.membership.roster) for node in sim.running()] == [1, 1, 1]
    sim.heal()
    settle(sim)


@pytest.mark.parametrize("count", [4, 24])
def test_what_was_lost_on_the_way_is_found_by_comparing(count: int) -> None:
    sim = mesh(count)
    sim.loss = 1.0
    sim.change("n1", publisher(1, "lab/temp"))
    sim.run(0.01)
    sim.loss = 0.0
    assert not sim.agree()
    settle(sim)
    assert not any(seen(node, NodeDown) for node in sim.running())
    assert_same_view(sim)


def test_more_rows_than_a_page_arrive_in_pages() -> None:
    sim = mesh(3)
    for number in range(1, 700):
        sim.nodes["n1"].table.put(publisher_row("n1", number))
    sim.change("n1", publisher(700, "lab/temp"))
    sim.start("n3", ["n0"])
    settle(sim)
    assert len(sim.nodes["n3"].table.publishers("lab/temp")) == 700
    assert max(node.largest_bytes for node in sim.running()) <= PAGE_BYTES + 1024


def test_a_thousand_nodes_are_measured_by_the_same_code() -> None:
    result = measure(60)
    assert result.change_rounds >= 2
    assert result.largest_bytes <= MAX_FRAME_BYTES
    assert [row["met"] for row in rows(result)].count(None) == 7


def test_a_cut_between_two_nodes_only_harms_nobody() -> None:
    sim = mesh(5)
    down = {name: len(seen(node, NodeDown)) for name, node in sim.nodes.items()}
    blocked = {sim.nodes["n1"], sim.nodes["n2"]}
    plain = sim._send

    def send(node: SimulatedNode, number: int, message: object) -> None:
        pipe = node.links.get(number)
        if pipe is None or {node, pipe.to} != blocked:
            plain(node, number, message)  # type: ignore[arg-type]

    sim._send = send  # type: ignore[method-assign]
    sim.run(30.0)
    assert sim.agree()
    assert {name: len(seen(node, NodeDown)) for name, node in sim.nodes.items()} == down


# ------------------------------------------------------------------ tags


def test_the_backup_takes_over_and_names_another() -> None:
    sim = mesh(5)
    sim.change("n1", tag("lab/temp", depth=16))
    settle(sim)
    row = sim.nodes["n0"].table.tag("lab/temp")
    assert row is not None
    assert row.primary == "n1"
    assert row.backup in sim.nodes
    sim.kill("n1")
    settle(sim)
    for node in sim.running():
        now = node.table.tag("lab/temp")
        assert now is not None
        assert (now.primary, now.term, now.attributes) == (row.backup, 1, row.attributes)
        assert now.backup not in ("", "n1", row.backup)
    assert_same_view(sim)


def test_primary_and_backup_gone_together_leave_the_tag_to_one_who_uses_it() -> None:
    sim = mesh(6)
    sim.change("n1", tag("lab/temp"))
    settle(sim)
    row = sim.nodes["n0"].table.tag("lab/temp")
    assert row is not None
    user = next(name for name in sim.nodes if name not in ("n0", row.primary, row.backup))
    sim.change(user, subscriber(1, "lab/*"))
    settle(sim)
    sim.kill(row.primary, silently=True)
    sim.kill(row.backup, silently=True)
    settle(sim)
    now = sim.nodes[user].table.tag("lab/temp")
    assert now is not None
    assert now.primary == user
    assert_same_view(sim)


def test_a_primary_that_was_cut_off_finds_its_tag_in_good_hands() -> None:
    sim = mesh(5)
    sim.change("n1", tag("lab/temp", depth=16))
    settle(sim)
    sim.partition([], ["n1"])
    sim.run(30.0)
    sim.heal()
    settle(sim)
    rows = [node.table.tag("lab/temp") for node in sim.running()]
    assert all(row == rows[0] for row in rows)
    assert rows[0] is not None
    assert rows[0].primary != "n1"
    assert not any(seen(node, TagContest) for node in sim.running())
    assert_same_view(sim)


def test_a_tag_created_on_both_sides_of_a_partition_is_settled_and_said() -> None:
    sim = mesh(6)
    sim.partition(["n0", "n1", "n2"], ["n3", "n4", "n5"])
    sim.run(30.0)
    sim.change("n1", tag("lab/first", depth=8))
    sim.change("n1", tag("lab/temp", depth=16))
    sim.change("n4", tag("lab/temp", depth=32))
    sim.run(1.0)
    sim.heal()
    settle(sim)
    for node in sim.running():
        row = node.table.tag("lab/temp")
        assert row is not None
        assert row.attributes.depth == 32, "born before the other by the mesh's logical time"
    (contest,) = seen(sim.nodes["n1"], TagContest)
    assert "that of 'n4' counts: depth is 32 now, not 16" in str(contest)
    assert_same_view(sim)


# ------------------------------------------------------------------ names


def test_the_younger_of_two_with_one_name_stands_back_and_takes_over_when_the_older_goes() -> None:
    sim = mesh(4)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    twin = sim.start("n1", ["n0"], address="elsewhere:1")
    sim.change("elsewhere:1", publisher(2, "lab/temp"))
    assert sim.run_until(lambda: bool(seen(twin, NameConflict)), PATIENCE_S)
    conflict = seen(twin, NameConflict)[0]
    assert isinstance(conflict, NameConflict)
    assert conflict.mine
    assert "another name" in str(conflict)
    sim.run(20.0)
    assert not twin.cluster.membership.serving
    assert sim.nodes["n1"].cluster.membership.serving
    for name in ("n0", "n1", "n2", "n3"):
        assert [p.info.id for p in sim.nodes[name].table.publishers("lab/temp")] == [1]
    sim.kill("n1")
    assert sim.run_until(lambda: bool(seen(twin, NameCleared)), PATIENCE_S)
    settle(sim)
    for name in ("n0", "n2", "n3"):
        assert [p.info.id for p in sim.nodes[name].table.publishers("lab/temp")] == [2]


def test_two_with_one_name_on_two_sides_of_a_partition() -> None:
    sim = mesh(4)
    sim.partition(["n0", "n1"], ["n2", "n3"])
    sim.run(30.0)
    twin = sim.start("n1", ["n2"], address="elsewhere:1")
    twin.side = 1
    sim.change("elsewhere:1", publisher(2, "lab/temp"))
    sim.change("n1", publisher(1, "lab/temp"))
    sim.run(10.0)
    assert [p.info.id for p in sim.nodes["n3"].table.publishers("lab/temp")] == [2]
    sim.heal()
    sim.run(30.0)
    assert [node.cluster.membership.serving for node in (sim.nodes["n1"], twin)] == [True, False]
    for name in ("n0", "n1", "n2", "n3"):
        assert [p.info.id for p in sim.nodes[name].table.publishers("lab/temp")] == [1]


# ------------------------------------------------------------------ anything

NAMES = [f"n{number}" for number in range(6)]
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("start"), names, st.booleans()),
    st.tuples(st.just("kill"), names, st.booleans()),
    st.tuples(st.just("stop"), names),
    st.tuples(st.just("cut"), st.sets(names, max_size=5)),
    st.tuples(st.just("heal")),
    st.tuples(st.just("tag"), names, st.sampled_from(["a", "b/c"]), st.sampled_from([8, 16])),
    st.tuples(st.just("publish"), names, st.integers(1, 3)),
    st.tuples(st.just("unpublish"), names, st.integers(1, 3)),
    st.tuples(
        st.just("noise"), st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.3])
    ),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.1, 1.0, 5.0, 20.0])),
)


def play(sim: MeshSimulation, step: tuple[object, ...]) -> None:
    match step:
        case ("start", name, old):
            if not sim.nodes[name].running:
                sim.start(name, ["n0"], old_identity=old)
        case ("kill", name, silently):
            sim.kill(name, silently=silently)
        case ("stop", name):
            if sim.nodes[name].running:
                sim.stop(name)
        case ("cut", side):
            sim.partition([], side)
        case ("heal",):
            sim.heal()
        case ("tag", name, tag_name, depth):
            if sim.nodes[name].running and sim.nodes[name].table.tag(tag_name) is None:
                sim.change(name, tag(tag_name, depth=depth))
        case ("publish", name, number):
            if sim.nodes[name].running:
                sim.change(name, publisher(number, "a"))
        case ("unpublish", name, number):
            if sim.nodes[name].running:
                sim.change(name, lambda table: table.remove(publisher_key(number)))
        case ("noise", loss, repeat, reorder):
            sim.loss, sim.repeat, sim.reorder = loss, repeat, reorder
        case ("wait", seconds):
            sim.run(seconds)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.lists(steps, max_size=14))
def test_whatever_happened_nodes_agree_once_the_network_is_whole(seed: int, story: list[tuple[object, ...]]) -> None:
    sim = MeshSimulation(seed=seed, through_wire=True)
    for name in NAMES:
        sim.start(name, ["n0"] if name != "n0" else [])
    for step in story:
        play(sim, step)
    sim.loss = sim.repeat = sim.reorder = 0.0
    sim.heal()
    if not sim.nodes["n0"].running:
        sim.start("n0")
    settle(sim)
    assert_same_view(sim)
    names_here = sorted(node.name for node in sim.running())
    for node in sim.running():
        ups = [a.record.name for a in node.seen if isinstance(a, NodeUp)]
        assert set(node.cluster.membership.names.holders) <= set(ups)
        assert sorted({*node.cluster.membership.names.holders, node.name}) == names_here
        assert node.cluster.offences == 0
    assert_quiet(sim)
