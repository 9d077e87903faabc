"""What takes long is read in slices."""

from __future__ import annotations

import asyncio

from ringcast.daemon.observe.slices import SLICE_S, Slices


def test_others_have_a_turn_between_slices() -> None:
    async def body() -> None:
        now = 0.0
        turns = 0

        def clock() -> float:
            return now

        def rows() -> list[int]:
            return list(range(100))

        def slow(row: int) -> int:
            nonlocal now
            now += 0.3 * SLICE_S
            return row

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        slices = Slices(clock)
        assert await slices.gather(map(slow, rows())) == rows()
        beside.cancel()
        assert turns >= 25
        assert SLICE_S < slices.longest_s < 1.5 * SLICE_S

    asyncio.run(body())
