"""Plans are made away from the loop: few in a thread, whole ones in a process; without a solver by the rule."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from ringcast.control.limits import MAX_WHY_CHARS
from ringcast.daemon.placing import solving
from ringcast.daemon.placing.solving import Answer, Question, Solving, printable, solved
from ringcast.placement.case import Case
from ringcast.placement.checks import check
from ringcast.placement.model import Demand, Link, Node, Problem, Subscriber


def problem(bandwidth: float = 1e9) -> Problem:
    """a - n, and behind n two that each want two thirds of it, one of which is pinned."""
    subscribers = (Subscriber("b#1", "b", 2), Subscriber("c#1", "c", 2), Subscriber("c#2", "c", 2, proxy="a"))
    links = (Link("a", "n", bandwidth), Link("n", "b"), Link("n", "c"))
    nodes = tuple(Node(name) for name in "anbc")
    return check(Problem(nodes, links, (Demand("t", "a", 0.01, 1000, subscribers),), charge="sent"))


async def both(given: Problem) -> tuple[Answer, Answer]:
    made = Solving()
    try:
        return await made.few(Case(given)), await made.whole(Case(given))
    finally:
        made.close()


def test_thread_and_process_agree() -> None:
    few, whole = asyncio.run(both(problem()))
    assert few.places == whole.places
    assert few.whys == whole.whys
    assert few.whys[0].startswith("t, b#1: on ")
    assert few.whys[2] == ""  # nobody chose
    assert not whole.note


def test_that_nothing_fits_is_an_answer() -> None:
    few, whole = asyncio.run(both(problem(bandwidth=1.0)))
    assert (few.feasible, whole.feasible) == (False, False)
    assert "a-n" in whole.problem or "link" in whole.problem


def test_without_the_solver_it_is_the_rule_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    found = solved(Question(problem()))
    assert found.feasible
    assert found.note == solving.WITHOUT
    assert found.places == solving.by_rule(Case(problem())).places


def test_reasons_fit_a_row() -> None:
    assert printable("a\nb" + "x" * 1000) == "a?b" + "x" * (MAX_WHY_CHARS - 3)


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*args: object, **more: object) -> None:
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with pytest.raises(solving.Failed, match="too many processes"):
        asyncio.run(both(problem()))
