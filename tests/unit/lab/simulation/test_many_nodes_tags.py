"""Tags and names in a simulated mesh: who takes over, and whatever happens, all agree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_mesh import (
    PATIENCE_S,
    assert_quiet,
    assert_same_view,
    mesh,
    publisher,
    seen,
    settle,
    subscriber,
    tag,
)

from ringcast.daemon.mesh.core.events import NameCleared, NameConflict, NodeUp, TagContest
from ringcast.daemon.table.rows import publisher_key
from ringcast.lab.simulation.many_nodes import MeshSimulation


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
