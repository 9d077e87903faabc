"""A model that one node is given reaches all of them, also those that come later or come back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from ringcast.control.between.choosing import MODEL, MODELS
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.choosing.spreading import TRIES, Spreading
from ringcast.errors import BrokenError

Handler = Callable[[str, bytes], Awaitable[bytes]]


class Node:
    """One of several daemons in one process: what it has, and what it asks of others."""

    def __init__(self, name: str, nodes: dict[str, Node], may_give: Callable[[str], bool] = lambda node: True) -> None:
        self.refused: Counter[str] = Counter()
        self.name, self.nodes = name, nodes
        self.handlers: dict[str, Handler] = {}
        self.asked: list[tuple[str, str]] = []
        self.failures = 0
        nodes[name] = self
        self.models = Models(self, may_give)
        self.background = Background()
        self.spreading = Spreading(self, self.models, lambda: 1_000, self.background, pause_s=0.0)

    def node(self, name: str) -> object | None:
        return self.nodes.get(name)

    def serve(self, service: str, handler: Handler) -> None:
        self.handlers[service] = handler

    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes:
        self.asked.append((node, service))
        if self.failures:
            self.failures -= 1
            raise TimeoutError
        if node not in self.nodes:
            raise BrokenError(f"{node} is gone")
        return await self.nodes[node].handlers[service](self.name, payload)

    async def meets(self, *names: str) -> None:
        for name in names:
            self.spreading.node_came(name)
        while self.background._tasks:
            await asyncio.gather(*self.background._tasks)

    def label(self, metric: str = "relate2") -> str:
        found = self.models.of(metric)
        assert found is not None
        return found.labels[0]


def model(label: str) -> bytes:
    return msgspec.json.encode(
        {
            "metric": "relate2", "family": "linear", "share": 1.0, "features": ["loss_percent"], "labels": [label],
            "weights": [[0.0]], "constants": [0.0],
        }
    )  # fmt: skip


@pytest.fixture
def nodes() -> dict[str, Node]:
    return {}


def test_it_is_given_to_all_that_are_here(nodes: dict[str, Node]) -> None:
    a, b, c = (Node(name, nodes) for name in "abc")
    a.models.load(model("nak"), 10)
    assert asyncio.run(a.spreading.give(["b", "c"])) == []
    assert (b.label(), c.label()) == ("nak", "nak")


def test_who_comes_later_or_comes_back_is_given_it_by_whoever_has_it(nodes: dict[str, Node]) -> None:
    a, b = (Node(name, nodes) for name in "ab")
    a.models.load(model("nak"), 10)
    asyncio.run(b.meets("a"))
    assert b.asked == [], "it has nothing to tell"
    asyncio.run(a.meets("b"))
    assert b.label() == "nak"
    again = Node("a", nodes)
    assert again.models.versions() == {}, "it was started again"
    asyncio.run(b.meets("a"))
    assert again.label() == "nak"
    assert again.models.versions() == {"relate2": 10}


def test_of_two_that_met_apart_the_later_one_is_left_on_both(nodes: dict[str, Node]) -> None:
    a, b = (Node(name, nodes) for name in "ab")
    a.models.load(model("nak"), 10)
    b.models.load(model("tcp"), 20)
    asyncio.run(a.meets("b"))
    assert (a.label(), b.label()) == ("tcp", "tcp")
    assert [service for _, service in a.asked] == [MODELS, MODEL]


def test_who_does_not_answer_at_first_is_told_again_and_who_left_is_not(nodes: dict[str, Node]) -> None:
    a, b = (Node(name, nodes) for name in "ab")
    a.models.load(model("nak"), 10)
    a.failures = 2
    asyncio.run(a.meets("b"))
    assert b.label() == "nak"
    a.asked.clear()
    asyncio.run(a.meets("gone"))
    assert len(a.asked) == 1
    a.asked.clear()
    a.failures = 100
    asyncio.run(a.meets("b"))
    assert len(a.asked) == TRIES


def test_whoever_loads_it_is_told_who_did_not_take_it(nodes: dict[str, Node]) -> None:
    a = Node("a", nodes)
    strict = Node("b", nodes, may_give=lambda node: node != "a")
    a.models.load(model("nak"), 10)
    refused, gone = asyncio.run(a.spreading.give(["b", "c"]))
    assert refused.startswith("node b did not take the model for relate2")
    assert gone.startswith("node c did not say that it took the model")
    assert strict.models.versions() == {}


def test_one_that_comes_while_a_later_one_is_loaded_does_not_replace_it(nodes: dict[str, Node]) -> None:
    a, b = (Node(name, nodes) for name in "ab")
    b.models.load(model("nak"), 10)
    serve = b.handlers[MODEL]

    async def slowly(node: str, payload: bytes) -> bytes:
        a.models.load(model("tcp"), 20)
        return await serve(node, payload)

    b.handlers[MODEL] = slowly
    asyncio.run(a.models.follow("b", b.models.versions(), 30))
    assert a.label() == "tcp"
