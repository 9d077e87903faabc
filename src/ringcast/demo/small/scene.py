"""What can be seen of the demo at one moment, as values, and as the tables that are shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ringcast.cli.parts.units import show_bytes, show_hz, show_ns
from ringcast.demo.small.roles import Role

PUBLISHER_HEADS = ("publisher", "sends", "on", "rate", "sent", "bytes")
SUBSCRIBER_HEADS = ("subscriber", "receives", "from", "rate", "received", "lost", "p50", "p99")
PULL_HEADS = ("pulled", "call", "found")


class PublisherSeen(msgspec.Struct, frozen=True, kw_only=True):
    sent: int
    bytes: int
    rate_hz: float | None


class SubscriberSeen(msgspec.Struct, frozen=True, kw_only=True):
    received: int
    lost: int
    rate_hz: float | None
    latency_p50_ns: int | None
    latency_p99_ns: int | None


class Pulled(msgspec.Struct, frozen=True):
    """What one call to a history gave."""

    what: str
    call: str
    found: str


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody's counters, by role. Who has not begun yet is not in it."""

    publishers: Mapping[str, PublisherSeen]
    subscribers: Mapping[str, SubscriberSeen]

    def at_the_rates_of(self, other: Scene) -> Scene:
        """These counters, with the rates of another moment: at the end everybody is at rest."""
        publishers = {
            name: replace(seen, rate_hz=other.publishers[name].rate_hz if name in other.publishers else None)
            for name, seen in self.publishers.items()
        }
        subscribers = {
            name: replace(seen, rate_hz=other.subscribers[name].rate_hz if name in other.subscribers else None)
            for name, seen in self.subscribers.items()
        }
        return Scene(publishers=publishers, subscribers=subscribers)


def publisher_cells(scene: Scene, roles: Sequence[Role]) -> list[list[str]]:
    rows = []
    for role in roles:
        seen = scene.publishers.get(role.name)
        figures = [show_hz(seen.rate_hz), str(seen.sent), show_bytes(seen.bytes)] if seen else ["-"] * 3
        rows.append([role.name, role.how, role.selects, *figures])
    return rows


def subscriber_cells(scene: Scene, roles: Sequence[Role]) -> list[list[str]]:
    rows = []
    for role in roles:
        seen = scene.subscribers.get(role.name)
        figures = ["-"] * 5
        if seen:
            p50, p99 = show_ns(seen.latency_p50_ns), show_ns(seen.latency_p99_ns)
            figures = [show_hz(seen.rate_hz), str(seen.received), str(seen.lost), p50, p99]
        rows.append([role.name, role.how, role.selects, *figures])
    return rows


def progress_line(scene: Scene, seconds: float) -> str:
    """The scene in one line, for a log."""
    sending = ", ".join(f"{name} {show_hz(seen.rate_hz)}" for name, seen in scene.publishers.items())
    lost = ", ".join(f"{name} {seen.lost}" for name, seen in scene.subscribers.items() if seen.lost)
    received = sum(seen.received for seen in scene.subscribers.values())
    return f"{seconds:4.1f} s  sending: {sending}; received in all: {received}; lost: {lost or 'none'}"
