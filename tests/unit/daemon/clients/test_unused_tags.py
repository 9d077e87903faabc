"""Tags that nobody uses are ended when their lease is over; without a lease nobody looks."""

from __future__ import annotations

import asyncio

from ringcast.daemon.clients.unused_tags import UnusedTags


def test_they_end_when_their_lease_is_over() -> None:
    async def body() -> None:
        ended: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        tags = UnusedTags(0.01, lambda: {"a/b"}, lambda names: ended.done() or ended.set_result(names))
        tags.look_later()
        async with asyncio.timeout(30):
            assert await ended == ["a/b"]
        tags.close()

    asyncio.run(body())


def test_without_a_lease_nobody_looks() -> None:
    async def body() -> None:
        def fail() -> set[str]:
            raise AssertionError("nobody asked to look")

        tags = UnusedTags(0, fail, lambda names: None)
        tags.look_later()
        assert not tags._alarm.waiting
        tags.close()

    asyncio.run(body())
