"""What a sending node tells others about their channels."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from ringcast.control import service
from ringcast.control.service import RegroupChannel
from ringcast.daemon.background import Background
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.streams import channel_services
from ringcast.daemon.streams.channel_services import ReceiverNotices
from ringcast.errors import BrokenError
from ringcast.testing.waiting import wait_until_async


class Mesh:
    """A node that cannot be told anything for a while, or is gone after some tries."""

    def __init__(self, failures: int, gone_after: int = 100) -> None:
        self.told: list[str] = []
        self._failures = failures
        self._gone_after = gone_after

    def node(self, name: str) -> object | None:
        return self if len(self.told) < self._gone_after else None

    async def request(self, node: str, name: str, payload: bytes, timeout: float) -> bytes:
        self.told.append(name)
        if len(self.told) <= self._failures:
            raise TimeoutError if len(self.told) % 2 else BrokenError("the link went")
        return b""


@pytest.mark.parametrize(("failures", "gone_after", "tries"), [(0, 100, 1), (3, 100, 4), (100, 2, 2)])
def test_a_node_is_told_to_open_again_until_it_answers_or_is_gone(
    failures: int, gone_after: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_services, "AGAIN_S", 0.0)
    mesh: Any = Mesh(failures, gone_after)
    asyncio.run(_told(mesh))
    assert mesh.told == [service.AGAIN] * tries


async def _told(mesh: Any) -> None:
    ended = asyncio.Event()

    class Watched(Background):
        def start(self, name: str, work: Any, on_done: Any = None) -> Any:
            return super().start(name, work, ended.set)

    complaints = Complaints(logging.getLogger("test"))
    ReceiverNotices(mesh, Watched(), complaints).open_again("b", 7)
    await wait_until_async(ended.is_set)
    complaints.close()


def test_while_a_node_answers_only_the_newest_group_waits_to_be_told() -> None:
    asyncio.run(_regrouped())


async def _regrouped() -> None:
    told: list[tuple[str, list[str]]] = []
    answer = asyncio.Event()

    class Slow:
        async def request(self, node: str, name: str, payload: bytes, timeout: float) -> bytes:
            notice = service.decode_untrusted(payload, RegroupChannel)
            told.append((node, notice.peers))
            await answer.wait()
            if notice.peers == ["1"]:
                raise TimeoutError
            return b""

    background = Background()
    mesh: Any = Slow()
    notices = ReceiverNotices(mesh, background, Complaints(logging.getLogger("test")))
    for node in ("b", "c"):
        notices.regrouped(node, RegroupChannel(key=7, peers=["1"]))
    await wait_until_async(lambda: len(told) == 2)
    for peers in (["1", "2"], ["1", "2", "3"]):
        notices.regrouped("b", RegroupChannel(key=7, peers=peers))
    answer.set()
    await wait_until_async(lambda: len(told) == 3)
    assert told[2] == ("b", ["1", "2", "3"])
    notices.regrouped("b", RegroupChannel(key=7, peers=["1"]))
    await wait_until_async(lambda: len(told) == 4)
    assert told[3] == ("b", ["1"])
    background.close()
