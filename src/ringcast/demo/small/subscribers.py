"""The demo's subscribers: the same messages, received in every way there is. Each runs until its cue."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ringcast.demo.small.cast import CAMERA, SENSOR, THERMOMETER
from ringcast.demo.small.cue import Cue
from ringcast.message import Message
from ringcast.session import Session
from ringcast.subscriber import Subscriber

_THINKING_S = 0.02


def eager(session: Session, cue: Cue) -> None:
    _receive(session.subscribe(SENSOR), cue)


def reliable(session: Session, cue: Cue) -> None:
    _receive(session.subscribe(SENSOR, reliable=True), cue)


def everything(session: Session, cue: Cue) -> None:
    _receive(session.subscribe("demo/**"), cue)


def slow(session: Session, cue: Cue) -> None:
    """Each message says how many were lost before it; nobody else notices that this one is slow."""
    _receive(session.subscribe(SENSOR), cue, thinking_s=_THINKING_S)


def viewer(session: Session, cue: Cue) -> None:
    async def view() -> None:
        subscriber: Subscriber[Any] = session.subscribe(CAMERA)
        cue.then(subscriber.close)
        async for message in subscriber:
            message.data.mean()

    asyncio.run(view())


def display(session: Session, cue: Cue) -> None:
    """The callback runs on a thread of the session, while this one does something else: nothing."""
    shown: list[float] = []

    def show(message: Message[Any]) -> None:
        shown.append(message.data["celsius"])

    with session.subscribe(THERMOMETER) as subscriber, subscriber.on_message(show):
        cue.wait()


def _receive(subscriber: Subscriber, cue: Cue, thinking_s: float = 0.0) -> None:
    cue.then(subscriber.close)
    for _ in subscriber:
        if thinking_s:
            time.sleep(thinking_s)
