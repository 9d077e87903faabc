"""asyncio: two tasks converse, and neither needs a thread."""

import asyncio

import ringcast


async def serve(session: ringcast.AsyncSession, ready: asyncio.Event) -> None:
    questions = await session.subscribe("example/question", codec="json", schema=list[int])
    answers = await session.publisher("example/answer", codec="json", schema=int)
    ready.set()
    async for msg in questions:
        await answers.send(sum(msg.data))


async def main() -> None:
    async with ringcast.connect_async() as session:
        ready = asyncio.Event()
        server = asyncio.create_task(serve(session, ready))
        await ready.wait()
        ask = await session.publisher("example/question", codec="json", schema=list[int])
        answers = await session.subscribe("example/answer", codec="json", schema=int)
        for numbers in ([1, 2, 3], [10, 20], []):
            await ask.send(numbers)
            print(f"{numbers} sum to {(await answers.recv(timeout=5)).data}")
        server.cancel()


asyncio.run(main())
