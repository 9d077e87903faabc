"""How transports were chosen is asked of the nodes that keep the tags, when somebody lists channels."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ringcast.control.between.choosing import MOST_EXPLAINED, AllExplained, AskExplained, Explained
from ringcast.control.service import decode_untrusted, encode
from ringcast.daemon.choosing.explaining import Explaining
from ringcast.errors import BadMessage, BrokenError
from ringcast.model.carrier import Chosen


def told(transport: str) -> Explained:
    return Explained("auto:p99", transport, 5, "of loss", "the rule", "3 receivers", [(transport, 1.0)])


class Node:
    """Node a of two; b explains whatever it is asked for, or does what `answer` says."""

    def __init__(self, kept: dict[str, str], answer: BaseException | bytes | None = None) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.serve: Any = None
        self._answer = answer
        rows = {
            tag: SimpleNamespace(primary=keeper, chosen={"auto:p99": Chosen("nak")} if keeper else {})
            for tag, keeper in kept.items()
        }
        table = SimpleNamespace(node="a", tag=rows.get)
        mesh = SimpleNamespace(serve=self._serves, request=self._request)
        self.explaining = Explaining(cast(Any, table), cast(Any, mesh), lambda tag: [told("nak")])

    def _serves(self, service: str, handler: Any) -> None:
        self.serve = handler

    async def _request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes:
        tags = decode_untrusted(payload, AskExplained).tags
        self.asked.append((node, tags))
        await asyncio.sleep(0)
        if isinstance(self._answer, BaseException):
            raise self._answer
        more = ["what nobody asked for"][: MOST_EXPLAINED - len(tags)]
        answer = AllExplained(tags={tag: [told("tcp")] for tag in (*tags, *more)})
        return self._answer or encode(answer)

    def chosen(self, *tags: str) -> dict[str, list[str]]:
        found = asyncio.run(self.explaining.choices(tags))
        return {tag: [one.transport for one in choices] for tag, choices in found.items()}


def test_who_keeps_a_tag_explains_it() -> None:
    node = Node({"mine": "a", "theirs": "b"})
    assert node.chosen("mine", "theirs", "theirs", "unknown") == {"mine": ["nak"], "theirs": ["tcp"]}
    assert node.asked == [("b", ["theirs"])]


def test_where_nothing_was_left_to_the_mesh_nobody_is_asked() -> None:
    node = Node({"pinned": ""})
    assert node.chosen("pinned") == {}
    assert node.asked == []


def test_of_many_tags_a_keeper_is_asked_for_some_at_a_time() -> None:
    tags = [f"t{number:03}" for number in range(2 * MOST_EXPLAINED + 1)]
    node = Node(dict.fromkeys(tags, "b"))
    assert set(node.chosen(*tags)) == set(tags)
    assert [len(some) for _, some in node.asked] == [MOST_EXPLAINED, MOST_EXPLAINED, 1]


@pytest.mark.parametrize("answer", [TimeoutError(), BrokenError("b is gone"), b"no answer that is known"])
def test_a_keeper_that_does_not_answer_leaves_its_tags_unexplained(answer: BaseException | bytes) -> None:
    assert Node({"mine": "a", "theirs": "b"}, answer).chosen("mine", "theirs") == {"mine": ["nak"]}


def test_other_nodes_are_answered_and_bad_questions_refused() -> None:
    node = Node({"mine": "a"})
    answer = asyncio.run(node.serve("b", encode(AskExplained(tags=["mine"]))))
    assert [one.transport for one in decode_untrusted(answer, AllExplained).tags["mine"]] == ["nak"]
    with pytest.raises(BadMessage):
        asyncio.run(node.serve("b", encode(AskExplained(tags=["t"] * (MOST_EXPLAINED + 1)))))


def test_who_asks_the_same_meanwhile_shares_the_answer_and_later_ones_ask_anew() -> None:
    node = Node({"theirs": "b", "others": "b"})

    async def ask() -> list[set[str]]:
        asked = [("theirs",), ("theirs",), ("others",)]
        return [set(found) for found in await asyncio.gather(*map(node.explaining.choices, asked))]

    assert asyncio.run(ask()) == [{"theirs"}, {"theirs"}, {"others"}]
    assert node.asked == [("b", ["theirs"]), ("b", ["others"])]
    assert node.chosen("theirs") == {"theirs": ["tcp"]}
    assert len(node.asked) == 3
