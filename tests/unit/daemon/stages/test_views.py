"""Who makes the views of a node: when the process is started, started again, and ended."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ringcast.daemon.background import Background
from ringcast.daemon.stages import views as module
from ringcast.daemon.stages.views import Views
from ringcast.model.policy import OnChange, View, described, view
from ringcast.model.tag import TagAttributes
from ringcast.testing.waiting import wait_until_async


class Table:
    """The rows that the real one would have."""

    node = "here"

    def __init__(self, made: View, publishers: list[tuple[str, bool]]) -> None:
        attributes = TagAttributes(codec="view", schema=described(made, "variables", None))
        self.row = SimpleNamespace(name=made.tag, attributes=attributes)
        self.subscribed = True
        self._publishers = [SimpleNamespace(owner=node, alive=alive) for node, alive in publishers]

    def tags(self, pattern: str) -> list[Any]:
        assert pattern == "@view/**"
        return [self.row]

    def subscribers(self, name: str) -> list[str]:
        return ["somebody"] if self.subscribed and name == self.row.name else []

    def publishers(self, tag: str) -> list[Any]:
        assert tag == "plant"
        return self._publishers


def wanted(at: str, publishers: list[tuple[str, bool]], subscribed: bool = True) -> bool:
    table = Table(view("plant", OnChange(), ("**",), at, "here", "", 1.0), publishers)
    table.subscribed = subscribed
    return Views(table, "socket", None).wanted()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "publishers", "made"),
    [
        ("publisher", [("here", True)], True),
        ("publisher", [("there", True)], False),
        ("publisher", [("here", False)], False),
        ("node:here", [("there", True)], True),
        ("node:there", [("here", True)], False),
    ],
)
def test_a_view_is_made_at_its_place(at: str, publishers: list[tuple[str, bool]], made: bool) -> None:
    assert wanted(at, publishers) is made


def test_nobody_subscribes() -> None:
    assert not wanted("node:here", [("here", True)], subscribed=False)


class Process:
    """One that ends with the given status, or when it is told to."""

    pid = 4711

    def __init__(self, status: int | None) -> None:
        self.status = status
        self._ended = threading.Event()
        if status is not None:
            self._ended.set()

    def wait(self, timeout: float | None = None) -> int:
        self._ended.wait(60)
        return self.status or 0

    def poll(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.status = 0
        self._ended.set()


def test_a_host_that_dies_is_started_again_and_ends_with_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_life(monkeypatch))


async def _life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY_S", 0.0)
    started: list[Process] = []

    def spawn(command: list[str], **options: Any) -> Process:
        assert command[-1] == "socket"
        assert options["start_new_session"], "Ctrl-C is for the daemon"
        started.append(Process(1 if len(started) < 2 else None))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", spawn)
    table = Table(view("plant", OnChange(), ("**",), "node:here", "here", "", 1.0), [("here", True)])
    background = Background()
    views = Views(table, "socket", background)  # type: ignore[arg-type]
    views.follow()
    views.follow()
    await wait_until_async(lambda: len(started) == 3)
    assert views.pid == 4711
    await views.close()
    assert started[-1].status == 0, "it was ended"
    await wait_until_async(lambda: views.pid is None)
    views.follow()
    assert len(started) == 3, "a daemon that ends starts nothing"
