"""Where data for a node goes when it has two links with this one, of which one is closed."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from mesh_town import looped

from ringcast.daemon.mesh import reaching
from ringcast.daemon.mesh.core.events import Doubted, Event
from ringcast.daemon.mesh.reaching import Reaching
from ringcast.daemon.mesh.services import asking
from ringcast.errors import BrokenError

HERE, ELSEWHERE = "10.0.0.2", "10.9.9.9"


class TwoLinks:
    """With node b: it asks on the first, which is `superfluous` for the membership, and answered at its address on the
    second."""

    def __init__(self) -> None:
        record = SimpleNamespace(name="b", control=(f"{HERE}:1",))
        self.links: dict[int, Any] = {
            number: SimpleNamespace(number=number, peer=record, closing=False, remote=f"{ELSEWHERE}:{number}")
            for number in (1, 2)
        }
        self.names = SimpleNamespace(holders={"b": record})
        self.superfluous = {1}
        self.proven = {2: HERE}
        self.told: list[Event] = []
        self.refused: Counter[str] = Counter()
        self.reaching = Reaching(self, self.links, self.refused, self.happened, lambda: True)  # type: ignore[arg-type]

    def happened(self, event: Event) -> None:
        self.told.append(event)

    def link_to(self, node: str) -> int:
        return 2

    def peer(self, number: int) -> Any:
        return None if number in self.superfluous else self.links[number].peer

    def proven_host(self, number: int, remote: str) -> str | None:
        return None if number in self.superfluous else self.proven.get(number)


@looped
async def test_who_asks_on_the_superfluous_link_is_reached_by_the_other() -> None:
    two = TwoLinks()
    asking.set(two.links[1])
    assert await two.reaching.host_of("b") == HERE
    assert Doubted(1) not in two.told


@looped
async def test_a_link_that_becomes_superfluous_while_it_is_doubted() -> None:
    two = TwoLinks()
    two.superfluous = set()
    asking.set(two.links[1])

    def doubted(event: Event) -> None:
        two.told.append(event)
        if event == Doubted(1):
            two.superfluous = {1}
            loop.call_soon(two.reaching.links_changed)

    two.reaching = Reaching(two, two.links, two.refused, doubted, lambda: True)  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    assert await two.reaching.host_of("b") == HERE
    assert Doubted(1) in two.told
    assert not two.refused


@looped
async def test_a_node_that_answers_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "PROOF_S", 0.01)
    two = TwoLinks()
    two.superfluous, two.proven = set(), {}
    asking.set(two.links[1])
    with pytest.raises(BrokenError, match=f"says it is at {HERE}:1, where it does not answer"):
        await two.reaching.host_of("b")
    assert two.refused["unproven address"] == 1
