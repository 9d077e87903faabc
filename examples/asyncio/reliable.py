"""asyncio: a reliable reader is waited for without stopping the loop, and `drain` says when it is through."""

import asyncio

import ringcast

COUNT = 2_000


async def main() -> None:
    async with ringcast.connect_async() as session:
        session.on_connection_change(lambda change: print("daemon:", change.state))
        # A ring of 64 messages: without waiting, most of them would be overwritten before they are read.
        tag = await session.tag("example/ledger", codec="json", schema=int, depth=64, max_wait_s=5.0)
        pub, exact = await tag.publisher(), await tag.subscribe(reliable=True)

        async def read() -> int:
            return sum([msg.data async for msg in exact])

        reader = asyncio.create_task(read())
        for number in range(COUNT):
            await pub.send(number)
        await pub.drain(timeout=10)
        await exact.close()
        print("sum:", await reader, "lost:", exact.lost)

        # Pull: what the ring still holds, by number and by time.
        history = await tag.history()
        newest = await history.latest()
        print("newest:", newest.data, "three before it:", (await history.latest(back=3)).data)
        print("sent by then:", (await history.before(newest.sent_ns)).data)
        await tag.destroy(force=True)


asyncio.run(main())
