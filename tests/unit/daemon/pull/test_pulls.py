"""A pull over several nodes of which some do not answer: the answer says which, and nobody's silence costs the rest."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ringcast.control import service
from ringcast.control.service import Bounds, Head, Pull, PullAnswer, Pulled
from ringcast.daemon.pull import pulls
from ringcast.daemon.pull.pulls import Pulls
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import BrokenError, Empty, RingcastError
from ringcast.model.identity import PublisherInfo

INFOS = {
    node: PublisherInfo(id=1, node=node, tag="t", incarnation=number, pid=1, user="u")
    for number, node in enumerate("bcd", 1)
}


class Mesh:
    """Each node has one publisher, whose only message was sent at the node's number; some fail."""

    def __init__(self, **failures: RingcastError | str) -> None:
        self.failures = failures

    async def request(self, node: str, name: str, payload: bytes, timeout: float) -> bytes:
        query = service.decode_untrusted(payload, Pull)
        failure = self.failures.get(f"{node}_{query.kind}", self.failures.get(node))
        if failure == "stands still":
            await asyncio.Event().wait()
        if isinstance(failure, RingcastError):
            raise failure
        info = INFOS[node]
        number = info.incarnation
        if query.kind == "heads":
            return service.encode(PullAnswer(publishers=[info], heads=[Head(number, 0, number)]))
        if query.kind == "span":
            return service.encode(PullAnswer(publishers=[info], bounds=[Bounds(number, 0, 0)]))
        message = Pulled(number, 0, number, number, False, 0, node.encode())
        return service.encode(PullAnswer(publishers=[info], messages=[message]))


def ask(mesh: Mesh, kind: Any = "latest") -> PullAnswer:
    rows = [PublisherRow(info=info, depth=8, capacity_bytes=64) for info in INFOS.values()]
    local: Any = SimpleNamespace(table=SimpleNamespace(node="a", publishers=lambda tag: rows))
    found = asyncio.run(Pulls(local, mesh).pull("publisher", Pull(tag="t", kind=kind)))
    return service.decode_untrusted(found, PullAnswer)


def test_all_answer() -> None:
    answer = ask(Mesh())
    assert (answer.messages[0].payload, answer.unanswered) == (b"d", [])


def test_one_is_gone_and_the_answer_says_so() -> None:
    answer = ask(Mesh(d=BrokenError("gone")))
    assert (answer.messages[0].payload, answer.unanswered) == (b"c", ["d"])
    assert ask(Mesh(d=BrokenError("gone")), "span").unanswered == ["d"]


def test_one_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulls, "ONE_OF_SEVERAL_S", 0.01)
    answer = ask(Mesh(c="stands still"))
    assert (answer.messages[0].payload, answer.unanswered) == (b"d", ["c"])


def test_one_goes_between_question_and_answer() -> None:
    answer = ask(Mesh(d_at=BrokenError("gone")))
    assert (answer.messages[0].payload, answer.unanswered) == (b"c", ["d"])


def test_one_with_nothing_is_an_answer_too() -> None:
    answer = ask(Mesh(d=Empty()))
    assert (answer.messages[0].payload, answer.unanswered) == (b"c", [])


@pytest.mark.parametrize("kind", ["latest", "span"])
def test_nobody_answers(kind: str) -> None:
    with pytest.raises(BrokenError, match="gone"):
        ask(Mesh(b=BrokenError("gone"), c=BrokenError("gone"), d=BrokenError("gone")), kind)


def test_all_go_between_question_and_answer() -> None:
    gone = BrokenError("gone")
    with pytest.raises(BrokenError):
        ask(Mesh(b_at=gone, c_at=gone, d_at=gone))
