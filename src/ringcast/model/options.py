"""What a program may name when it opens a tag, publishes or subscribes, as types of keyword arguments. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

from ringcast.model.policy import Policy
from ringcast.model.profile import Profile

Start = Literal["new", "latest", "earliest"] | int | Mapping[int, int]
"""Where a subscription begins. A mapping gives numbers by incarnation, for whoever goes on where it once stopped; rings
that it does not name are read from the oldest message held."""


class RingOptions(TypedDict, total=False):
    """What is left out is as the tag has it, or the default when it is created."""

    depth: int
    capacity_bytes: int
    max_wait_s: float
    prefault: bool
    create: bool


class TagOptions(TypedDict, total=False):
    """Of `session.tag`, beside codec and schema."""

    depth: int
    capacity_bytes: int
    max_wait_s: float
    prefault: bool
    at: str
    transport: str
    priority: str


class PublisherOptions(RingOptions, total=False):
    """Of `session.publisher`: how it sends, and the tag's."""

    on_slow: Literal["raise", "skip"]
    at: str
    transport: str
    priority: str


class SubscriptionOptions(TypedDict, total=False):
    """Of `tag.subscribe`."""

    start: Start
    reliable: bool
    busy_poll: bool
    every: int
    rate_hz: float | tuple[float, float] | None
    size: tuple[int, int] | tuple[tuple[int, int], tuple[int, int]] | None
    at: str
    transport: str
    ordered: bool
    priority: str
    policy: Policy | None
    deadline_s: float | None
    profile: str | Profile | None


class SubscribeOptions(SubscriptionOptions, RingOptions, total=False):
    """Of `session.subscribe`: how it receives, and the tag's."""

    only_best: bool
