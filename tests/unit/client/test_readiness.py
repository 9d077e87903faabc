"""A descriptor in a loop, with an eventfd in place of a subscriber's."""

import asyncio
import os

import pytest

from ringcast.client.readiness import Readiness
from ringcast.errors import BusyError, ClosedError, TagDestroyed


class Source:
    """Behaves like a subscriber with a bridge: readable until a take comes back empty."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.items: list[int] = []
        self.failure = None

    def put(self, item: int) -> None:
        self.items.append(item)
        os.eventfd_write(self.fd, 1)

    def take(self) -> int | None:
        return None if self.quiet() else self.items.pop(0)

    def quiet(self) -> bool:
        if not self.items:
            try:
                os.eventfd_read(self.fd)
            except BlockingIOError:
                pass
        return not self.items


@pytest.fixture
def source():
    source = Source()
    yield source
    os.close(source.fd)


@pytest.fixture
def ready(source):
    ready = Readiness(source.fd)
    yield ready
    ready.close()


def receive(ready, source, timeout=30.0):
    return ready.receive(source.take, lambda: source.failure, timeout)


def test_what_is_there_needs_no_waiting(ready, source):
    source.put(1)
    assert asyncio.run(receive(ready, source)) == 1


def test_what_comes_later_wakes_the_task(ready, source):
    async def main():
        for i in range(5):
            task = asyncio.create_task(receive(ready, source))
            await asyncio.sleep(0)
            source.put(i)
            assert await task == i

    asyncio.run(main())


def test_a_wake_up_for_nothing_goes_on_waiting(ready, source):
    async def main():
        task = asyncio.create_task(receive(ready, source))
        for _ in range(3):
            await asyncio.sleep(0)
            os.eventfd_write(source.fd, 1)
        await asyncio.sleep(0)
        assert not task.done()
        source.put(7)
        assert await task == 7

    asyncio.run(main())


def test_a_descriptor_that_was_emptied_meanwhile_does_not_wake_the_task(source):
    ready = Readiness(source.fd, quiet=source.quiet)
    taken = []

    def take():
        taken.append(source.take())
        return taken[-1]

    async def main():
        for i in range(5):
            task = asyncio.create_task(ready.receive(take, lambda: source.failure, None))
            await asyncio.sleep(0)
            source.put(i)
            assert (
                await task == i
            )  # the loop sees the descriptor readable once more before the task takes what is there

    asyncio.run(main())
    ready.close()
    assert taken == [item for i in range(5) for item in (None, i)]


def test_a_descriptor_nobody_waits_for_does_not_keep_the_loop_busy(ready, source):
    async def main():
        task = asyncio.create_task(receive(ready, source))
        await asyncio.sleep(0)
        source.put(1)
        assert await task == 1
        source.put(2)
        while ready._loop is not None:  # the loop looks once, finds nobody waiting, and forgets the descriptor
            await asyncio.sleep(0)
        assert await receive(ready, source) == 2

    asyncio.run(main())


def test_time_runs_out(ready, source):
    with pytest.raises(TimeoutError, match=r"0\.001 s"):
        asyncio.run(receive(ready, source, 0.001))


def test_a_failure_ends_the_wait(ready, source):
    async def main():
        task = asyncio.create_task(receive(ready, source))
        await asyncio.sleep(0)
        source.failure = TagDestroyed("a")
        os.eventfd_write(source.fd, 1)
        await task

    with pytest.raises(TagDestroyed):
        asyncio.run(main())


def test_one_task_at_a_time(ready, source):
    async def main():
        task = asyncio.create_task(receive(ready, source))
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await receive(ready, source)
        task.cancel()
        source.put(1)
        assert await receive(ready, source) == 1

    asyncio.run(main())


def test_closing_within_the_loop_and_after_it(source):
    ready = Readiness(source.fd)

    async def main():
        task = asyncio.create_task(receive(ready, source))
        await asyncio.sleep(0)
        ready.close()
        ready.close()
        with pytest.raises(ClosedError):
            await task
        with pytest.raises(ClosedError):
            await receive(ready, source)

    asyncio.run(main())

    late = Readiness(source.fd)
    source.put(1)
    asyncio.run(receive(late, source))
    late.close()


def test_one_loop_after_the_other(ready, source):
    for i in range(3):

        async def main(i=i):
            task = asyncio.create_task(receive(ready, source))
            await asyncio.sleep(0)
            source.put(i)
            assert await task == i

        asyncio.run(main())
