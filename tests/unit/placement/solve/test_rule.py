"""The rule that needs no solver: as good as the optimum on small networks, and the publisher where nothing is saved."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from ringcast.lab.placement.instances import small
from ringcast.placement.case import Case
from ringcast.placement.checks import check
from ringcast.placement.model import Demand, Link, Node, Problem, Subscriber
from ringcast.placement.solve import rule
from ringcast.placement.solve.optimise import optimise_case

SEVEN = ("a", "m", "n", "b", "c", "d", "e")


def fork(*, proxies: dict[str, str] | None = None, hosts: str = "".join(SEVEN), cpu: float = 10.0) -> Problem:
    """a - m - n, and behind n four nodes that each want half of it."""
    wires = [("a", "m"), ("m", "n"), *(("n", leaf) for leaf in "bcde")]
    subscribers = tuple(Subscriber(leaf, leaf, 2, proxy=(proxies or {}).get(leaf)) for leaf in "bcde")
    nodes = tuple(Node(name, cpu, name in hosts) for name in SEVEN)
    demand = Demand("t", "a", 0.01, 1000, subscribers)
    return check(Problem(nodes, tuple(Link(a, b) for a, b in wires), (demand,), charge="sent"))


def proxies(problem: Problem) -> list[str]:
    found = rule.place(Case(problem))
    assert found.feasible
    return [one.proxy for one in found.streams]


def test_as_cheap_as_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "FEW", 0)
    compared = 0
    for number in range(150):
        case = Case(small(number))
        best, found = optimise_case(case), rule.place(case)
        if best.feasible and found.feasible:
            compared += 1
            assert found.cost <= best.cost * 1.05 + 1e-9, number
        assert not (found.feasible and not best.feasible), number
    assert compared > 75


def test_a_node_that_several_share(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxies(fork()) == ["n"] * 4
    monkeypatch.setattr(rule, "FEW", 0)
    assert proxies(fork()) == ["n"] * 4


def test_the_next_best_when_that_is_gone() -> None:
    assert proxies(fork(hosts="ambcde")) == ["m"] * 4


def test_what_is_where_it_is_stays() -> None:
    assert proxies(fork(proxies={"b": "a", "c": "c"}))[:2] == ["a", "c"]


def test_of_equal_places_the_publishers() -> None:
    one = dataclasses.replace(fork().demands[0], subscribers=(Subscriber("b", "b", 1),))
    assert proxies(dataclasses.replace(fork(), demands=(one,))) == ["a"]


def test_a_share_of_cpu_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringcast.placement.model import Costs

    problem = fork()
    # n would receive 100 messages a second, scale 50 and send 200: 3.5 ms of CPU a second.
    nodes = tuple(dataclasses.replace(node, cpu=0.003 if node.name == "n" else 1.0) for node in problem.nodes)
    problem = dataclasses.replace(problem, nodes=nodes, costs=Costs(1e-5, 1e-5, 1e-5))
    found = rule.place(Case(problem))
    assert found.feasible
    assert found.nodes[2] <= 0.003
    assert found.cost == pytest.approx(optimise_case(Case(problem)).cost)


def test_no_place_fits_is_an_answer() -> None:
    problem = fork()
    tight = dataclasses.replace(problem, links=(Link("a", "m", 1.0), *problem.links[1:]))
    found = rule.place(Case(tight))
    assert not found.feasible
    assert "capacity" in found.reasons[0].sentence


def test_a_daemon_that_runs_it_loads_neither_solver_nor_numpy() -> None:
    program = (
        "import sys, ringcast.daemon.placing.placer; print(sorted({'numpy', 'highspy'} & sys.modules.keys()))"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
