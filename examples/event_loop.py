"""asyncio: two tasks converse, and neither needs a thread."""

import asyncio

import ringcast


async def serve(session: ringcast.Session) -> None:
    questions = session.subscribe("example/question", codec="json")
    answers = session.publisher("example/answer", codec="json")
    async for msg in questions:
        if msg.data is None:
            return
        answers.send({"question": msg.data, "answer": sum(msg.data)})


async def main() -> None:
    async with ringcast.connect() as session:
        server = asyncio.create_task(serve(session))
        ask = session.publisher("example/question", codec="json")
        answers = session.subscribe("example/answer", codec="json")
        await asyncio.sleep(0)  # let the server subscribe
        for numbers in ([1, 2, 3], [10, 20], []):
            ask.send(numbers)
            msg = await answers.recv_async(timeout=5)
            print(f"{msg.data['question']} sum to {msg.data['answer']}")
        ask.send(None)
        await server


asyncio.run(main())
