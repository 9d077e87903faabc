"""Transports put together from recovery stages: `nak`, `lateral:r=4,c=3`, `multicast+nak`, `ack`, ...

One class for all of them; what differs is the recipe. Each datagram goes out once per receiving node, or, with
`multicast`, once; what the publisher's own thread cannot do is done by the daemon (`groups.py`,
`native/path/repair/retransmitter`).
"""

from __future__ import annotations

from ringcast.control.service import Seat
from ringcast.transport.groups import groups
from ringcast.transport.interface import Channel, Source
from ringcast.transport.member import MemberSending
from ringcast.transport.recipe import Recipe, read
from ringcast.transport.stack_receiving import StackReceiving


class Stacked:
    """Made by `of`."""

    seals = True

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.name = recipe.text
        self.shape = recipe.shape
        self.promises = recipe.promises

    @property
    def end(self) -> str:
        """Apart, because a thread that also hears multicast groups has to ask which socket can be read before it reads:
        a system call for each datagram that the others need not pay for."""
        return "multicast" if self.shape.multicast else "stack"

    @classmethod
    def of(cls, text: str) -> Stacked:
        """Raises QosMismatch."""
        return cls(read(text))

    def receive(self, host: str, port: int = 0) -> StackReceiving:
        return StackReceiving(host, port)

    def send(self, channel: Channel, source: Source, host: str, port: int) -> MemberSending:
        return groups().start(channel, source)

    def admit(self, channel: Channel, source: Source, host: str, port: int) -> Seat:
        return groups().admit(self.recipe, channel, source, host, port)

    def dismiss(self, key: int) -> None:
        groups().dismiss(key)

    def retune(self, key: int) -> None:
        groups().retune(key, self.recipe)

    def direct(self, key: int) -> None:
        groups().direct(key)

    def take_changes(self) -> list[tuple[int, list[str]]]:
        return groups().take_changes()

    def check(self) -> None:
        if self.shape.multicast:
            groups().check()
