"""An alarm rings once, at the earliest time that was asked for, and never after it was closed."""

from __future__ import annotations

import asyncio

from ringcast.daemon.alarm import Alarm


def test_it_rings_once_at_the_earliest_time_and_can_be_set_again_while_it_rings() -> None:
    async def body() -> None:
        rung: list[float] = []
        twice = asyncio.Event()

        def work() -> None:
            rung.append(asyncio.get_running_loop().time())
            assert not alarm.waiting
            if len(rung) == 1:
                alarm.within(0)
            else:
                twice.set()

        alarm = Alarm(work)
        begin = asyncio.get_running_loop().time()
        alarm.within(3600)
        alarm.by(begin)
        alarm.within(3600)
        assert alarm.waiting
        await twice.wait()
        assert len(rung) == 2
        assert not alarm.waiting

    asyncio.run(body())


def test_a_closed_one_rings_no_more() -> None:
    async def body() -> None:
        def fail() -> None:
            raise AssertionError("it was closed")

        alarm = Alarm(fail)
        alarm.within(0)
        alarm.close()
        alarm.within(0)
        assert not alarm.waiting
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(body())
