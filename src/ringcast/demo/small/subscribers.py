"""The demo's subscribers: the same messages, received in every way there is. Each runs until it is told to end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ringcast.demo.small.ending import Ending
from ringcast.demo.small.roles import CAMERA, SENSOR, THERMOMETER
from ringcast.message import Message
from ringcast.session import Session
from ringcast.subscriber import Subscriber

_THINKING_S = 0.02


def eager(session: Session, ending: Ending) -> None:
    _receive(session.subscribe(SENSOR), ending)


def reliable(session: Session, ending: Ending) -> None:
    _receive(session.subscribe(SENSOR, reliable=True), ending)


def everything(session: Session, ending: Ending) -> None:
    _receive(session.subscribe("demo/**"), ending)


def slow(session: Session, ending: Ending) -> None:
    """Each message says how many were lost before it; nobody else notices that this one is slow."""
    _receive(session.subscribe(SENSOR), ending, thinking_s=_THINKING_S)


def viewer(session: Session, ending: Ending) -> None:
    async def view() -> None:
        subscriber: Subscriber[Any] = session.subscribe(CAMERA)
        ending.then(subscriber.close)
        async for message in subscriber:
            message.data.mean()

    asyncio.run(view())


def display(session: Session, ending: Ending) -> None:
    """The callback runs on a thread of the session, while this one does something else: nothing."""
    shown: list[float] = []

    def show(message: Message[Any]) -> None:
        shown.append(message.data["celsius"])

    with session.subscribe(THERMOMETER) as subscriber, subscriber.on_message(show):
        ending.wait()


def _receive(subscriber: Subscriber, ending: Ending, thinking_s: float = 0.0) -> None:
    ending.then(subscriber.close)
    for _ in subscriber:
        if thinking_s:
            time.sleep(thinking_s)
