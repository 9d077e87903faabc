"""Two asyncio loops in two processes that wake each other by an eventfd each way: what a loop costs without a message.

Usage: python asyncio_eventfds.py CORE CORE COUNT    prints one round trip per line in nanoseconds
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

WARM_UP = 1000


async def play(mine: int, other: int, count: int, begins: bool) -> list[int]:
    """Round trips as the side that begins sees them."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def readable() -> None:
        os.eventfd_read(mine)
        woken.set_result(None)

    loop.add_reader(mine, readable)
    taken = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        if begins:
            os.eventfd_write(other, 1)
        await woken
        woken = loop.create_future()
        if not begins:
            os.eventfd_write(other, 1)
        taken.append(time.perf_counter_ns() - begin)
    return taken


def main(here: str, there: str, count: str) -> None:
    ping, pong = (os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2))
    child = os.fork()
    os.sched_setaffinity(0, {int(here if child else there)})
    if not child:
        asyncio.run(play(pong, ping, int(count) + WARM_UP, False))
        os._exit(0)
    taken = asyncio.run(play(ping, pong, int(count) + WARM_UP, True))
    os.waitpid(child, 0)
    print(*taken[WARM_UP:], sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
