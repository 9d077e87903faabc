"""Links end with the certificates that proved them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from ringcast.daemon.mesh.revocations import Revocations
from ringcast.security.identity import Proof
from ringcast.testing.waiting import PATIENCE_S


class Link:
    def __init__(self, name: str, lasts: timedelta) -> None:
        self.proof = Proof(name, 1, datetime.now(UTC) + lasts)
        self.ended = asyncio.Event()

    def abort(self) -> None:
        self.ended.set()


class Complaints:
    def __init__(self) -> None:
        self.said: list[str] = []

    def warning(self, kind: str, text: str, *words: object) -> None:
        self.said.append(text % words)


def revocations(links: dict[int, Link], complaints: Complaints) -> Revocations:
    identity: Any = SimpleNamespace(revocations=b"", until=datetime.now(UTC) + timedelta(days=90))
    pool: Any = SimpleNamespace(links=links)
    other: Any = None
    said: Any = complaints
    return Revocations(identity, pool, other, other, said)


def test_a_link_ends_when_its_certificate_does_and_others_go_on() -> None:
    async def body() -> None:
        over, soon = Link("over", -timedelta(seconds=1)), Link("soon", timedelta(seconds=0.2))
        later = Link("later", timedelta(days=9))
        links, complaints = {1: over, 2: soon, 3: later}, Complaints()
        made = revocations(links, complaints)
        made.linked("later")
        assert over.ended.is_set()
        del links[1]
        async with asyncio.timeout(PATIENCE_S):
            await soon.ended.wait()
        del links[2]
        assert not later.ended.is_set()
        assert [text.split()[3] for text in complaints.said] == ["over", "soon"]
        made.close()

    asyncio.run(body())
