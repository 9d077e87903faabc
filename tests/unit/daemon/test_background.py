"""Background tasks are held, named, counted when they fail, and cancelled at the end."""

from __future__ import annotations

import asyncio

import pytest

from ringcast.daemon.background import Background


def test_what_a_task_returns_is_for_whoever_waits() -> None:
    async def body() -> None:
        async def work() -> int:
            return 7

        ended: list[str] = []
        background = Background()
        task = background.start("seven", work(), lambda: ended.append("seven"))
        assert task.get_name() == "seven"
        assert await task == 7
        await asyncio.sleep(0)
        assert ended == ["seven"]
        assert background.failures == 0

    asyncio.run(body())


def test_a_failure_is_logged_with_its_name_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async def work() -> None:
            raise KeyError("a mistake of ours")

        ended: list[str] = []
        background = Background()
        await asyncio.wait([background.start("dial n2", work(), lambda: ended.append("dial"))])
        await asyncio.sleep(0)
        assert background.failures == 1
        assert ended == ["dial"]

    asyncio.run(body())
    assert "background task dial n2 failed" in caplog.text
    assert "a mistake of ours" in caplog.text


def test_closing_cancels_what_runs_and_what_comes_later() -> None:
    async def body() -> None:
        background = Background()
        running = background.start("waits", asyncio.Event().wait())
        background.close()
        late = background.start("late", asyncio.Event().wait())
        await asyncio.wait([running, late])
        assert running.cancelled()
        assert late.cancelled()
        assert background.failures == 0

    asyncio.run(body())
