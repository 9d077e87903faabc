"""A program as a type checker sees it; `tests/unit/test_types.py` gives it to mypy. It is never run.

`assert_type` says what a value is. A line with `type: ignore` must be an error: mypy reports one that is not needed.
"""

# mypy: disallow-any-expr

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_type

import msgspec

import ringcast
from ringcast import Blackboard, History, Message, MessageQueue, Publisher, PublisherInfo, Subscriber, Tag


class Reading(msgspec.Struct):
    celsius: float


@dataclass
class Step:
    number: int


class Row(TypedDict):
    name: str


def by_schema(session: ringcast.Session) -> None:
    tag = session.tag("lab/temperature", codec="msgpack", schema=Reading, depth=100)
    assert_type(tag, Tag[Reading])
    pub, sub, history = tag.publisher(), tag.subscribe(every=2), tag.history(depth=3)
    assert_type(pub, Publisher[Reading])
    assert_type(sub, Subscriber[Reading])
    assert_type(history, History[Reading])
    assert_type(pub.send(Reading(21.5)), int)
    pub.send({"celsius": 21.5})  # type: ignore[arg-type]
    pub.send_many([Step(1)])  # type: ignore[list-item]
    message = sub.recv(timeout=1.0)
    assert_type(message, Message[Reading])
    assert_type(message.data.celsius, float)
    assert_type(message.publisher, PublisherInfo)
    assert_type([one.data for one in sub.recv_many(3)], list[Reading])
    assert_type([one.data for one in sub], list[Reading])
    assert_type(sub.latest, Message[Reading] | None)
    assert_type(sub.queue(), MessageQueue[Reading])
    assert_type(sub.blackboard(), Blackboard[Reading])
    assert_type(history.latest().data, Reading)
    assert_type(history.at(3).data, Reading)
    assert_type([one.data for one in history.since(3)], list[Reading])
    assert_type(history.before(0).data, Reading)
    assert_type([one.data for one in history.between(0, 1)], list[Reading])

    def wrong(message: Message[Step]) -> None:
        print(message.data.number)

    def right(message: Message[Reading]) -> None:
        print(message.data.celsius)

    sub.on_message(right)
    sub.on_message(wrong)  # type: ignore[arg-type]


def by_other_schemas(session: ringcast.Session) -> None:
    assert_type(session.tag("a", codec="json", schema=Step), Tag[Step])
    assert_type(session.tag("a", codec="json", schema=Row), Tag[Row])
    assert_type(session.tag("a", codec="json", schema=dict[str, float]), Tag[dict[str, float]])
    assert_type(session.publisher("a", schema=Step), Publisher[Step])
    assert_type(session.subscribe("a", schema=Step, reliable=True).recv().data, Step)


def by_codec(session: ringcast.Session) -> None:
    raw = session.tag("a", codec="bytes")
    assert_type(raw, Tag[bytes])
    assert_type(raw.subscribe().recv().data, bytes)
    pub = raw.publisher()
    pub.send(b"1")
    pub.send(memoryview(b"1"))
    pub.send("text")  # type: ignore[arg-type]
    assert_type(session.subscribe("a", codec="bytes").recv().data, bytes)


def unknown(session: ringcast.Session) -> None:
    """What a program does not say, it does not know."""
    assert_type(session.tag("a"), Tag[object])
    assert_type(session.subscribe("a/*").recv().data, object)
    session.tag("a").publisher().send(b"1")
    session.tag("a", deep=3)  # type: ignore[call-overload]
    session.tag("a", depth="3")  # type: ignore[call-overload]


def whoever(reader: Subscriber, history: History) -> None:
    """Without a type in brackets it is the type of everything."""
    assert_type(reader.recv().data, object)
    assert_type(history.latest().data, object)


def private(pub: Publisher[bytes], sub: Subscriber[bytes]) -> None:
    """What is not an application's is not there."""
    sub.attach  # type: ignore[attr-defined] # noqa: B018
    sub.fail  # type: ignore[attr-defined] # noqa: B018
    sub.poke  # type: ignore[attr-defined] # noqa: B018
    pub.set_stage  # type: ignore[attr-defined] # noqa: B018
    pub.attach_fanout  # type: ignore[attr-defined] # noqa: B018


async def in_a_loop() -> None:
    async with ringcast.connect_async() as session:
        assert_type(session, ringcast.AsyncSession)
        tag = await session.tag("lab/temperature", codec="msgpack", schema=Reading)
        assert_type(tag, ringcast.AsyncTag[Reading])
        pub, sub = await tag.publisher(), await tag.subscribe(reliable=True)
        assert_type(await pub.send(Reading(21.5)), int)
        await pub.send(Step(1))  # type: ignore[arg-type]
        assert_type((await sub.recv()).data, Reading)
        async for message in sub:
            assert_type(message, Message[Reading])
        history = await tag.history()
        assert_type((await history.latest()).data, Reading)
        assert_type([one.data for one in await history.between(0, 1)], list[Reading])
        assert_type((await session.subscribe("a", codec="bytes")).recv_nowait().data, bytes)
        assert_type(await session.publisher("a", schema=Step), ringcast.AsyncPublisher[Step])
        session.on_connection_change(lambda change: print(change.state))
