"""Rows of what a daemon lists: tags, publishers, subscribers, nodes, channels. Values; messages carry pages of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringcast.model.carrier import Chosen
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Placed, Setting, Wanted
from ringcast.model.tag import TagAttributes

ClockSource = Literal["measured", "same", "common", "own", "unknown"]


class TagStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast tags`. Counters are sums over the publishers on this node."""

    name: str
    id: int
    attributes: TagAttributes
    publishers: int
    subscribers: int
    sent: int
    bytes: int
    last_sent_ns: int
    settings: dict[str, Setting] = {}
    """Administrative overrides by receiving node, or by one subscriber there (`NODE#NUMBER`); '' is every node."""
    placed: dict[str, Placed] = {}
    """Where the daemon that keeps the tag put the proxies of those who left it to it, by subscriber."""
    chosen: dict[str, Chosen] = {}
    """Which transport it chose for those who left it to it, by what they asked for."""


class PublisherStatus(msgspec.Struct, frozen=True, kw_only=True):
    info: PublisherInfo
    alive: bool
    counters: dict[str, int]
    last_sent_ns: int
    declared: Declared | None = None
    """What it promised to send (docs/admission.md)."""


class SubscriberStatus(msgspec.Struct, frozen=True, kw_only=True):
    info: SubscriberInfo
    counters: dict[str, int]
    latency: list[int]
    wanted: Wanted = Wanted()
    deadline_s: float = 0.0
    """Within which it wants messages; 0 is none."""


class ClockStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Another node's clock as this node's daemon knows it. All zero while the source is 'unknown'."""

    source: ClockSource
    """'measured' (times of its messages are translated), 'same' (the very clock of this node: one kernel), 'common' (by
    setting), 'own' (this node itself) or 'unknown' (no answer yet)."""
    offset_ns: int = 0
    """How far it is ahead of this node's."""
    drift: float = 0.0
    """By how much that grows, in seconds a second."""
    bound_ns: int = 0
    """The offset's error is no more."""
    half_round_trip_ns: int = 0
    """Half of the mean round trip of probes: what the LabMap paper takes for a bound."""
    fastest_ns: int = 0
    """The shortest round trip of a probe."""
    probes: int = 0
    steps: int = 0
    """How often it was seen to be set."""
    violation: str = ""
    """A common source is set, and this clock disagrees: in words."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a daemon did not do, for whom, and why. Never what a message said."""

    at_ns: int
    """UTC"""
    node: str
    kind: Literal["client", "node", "stranger", "web"]
    who: str
    pid: int = 0
    action: str
    what: str = ""
    reason: str
    left_out: int = 0
    """This one stands for so many more of its kind, which were not written down."""


class ClockEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something happened to a clock. A message on `@ringcast/NODE/clocks`.

    | kind        | what                                                                                |
    |-------------|-------------------------------------------------------------------------------------|
    | step        | `node`'s clock was set                                                              |
    | own-step    | this node's clock was set                                                           |
    | suspend     | this machine slept                                                                  |
    | violation   | a common source is set, and `node`'s clock disagrees                                |
    | agreed      | it agrees again                                                                     |
    | apart       | `node` seemed to have this node's very clock, and has not; it is measured from now on |
    """

    kind: str
    node: str
    """Whose clock; '' is this node's."""
    at_ns: int
    by_ns: int
    """By how much it was set, how long the machine slept, or how far the clock is ahead."""
    said: str
    """In words, as in the log."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast nodes`."""

    name: str
    state: str
    """'here', 'suspect', 'gone', or 'conflict' of a daemon whose name is another's."""
    me: bool
    linked: bool
    incarnation: int
    control: tuple[str, ...]
    data: tuple[str, ...]
    clock: ClockStatus | None = None
    """None of a node that is not here."""


class InForce(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the kernel has of one end of a channel, whatever was asked for."""

    dscp: str = ""
    queue: int | None = None
    """The socket's priority, which chooses the queue's band."""
    sched: str = ""
    """Of the thread that sends or delivers; '' where a publisher sends by itself."""
    thread: int = 0
    own: bool = False
    """It shares neither its thread nor its socket with other channels."""
    locked_bytes: int = 0
    """Of its ring, kept in memory."""
    wake_us: int | None = None
    """How late a core of the node may wake from its sleep, 0 for cores that do not sleep; None: as they like."""
    bandwidth: str = ""
    """Of the link, kept for it by the sending node's queues."""
    refused: str = ""
    """What of the priority is not in force, and why."""
    lost: str = ""
    """Of that, what the channel had whose place this one took a moment ago."""
    warning: str = ""
    """What its threads may hold up: those of the network card."""


class ChannelEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What an incoming channel met in the last seconds. None is what nobody can say: `tcp` hides its losses."""

    seconds: float
    receivers: int
    """Nodes that subscribe to the tag, but for the publisher's."""
    loss_percent: float | None
    """Before any repair."""
    burst: float | None
    """Packets lost in a row."""
    rate_hz: float
    payload_bytes: float
    round_trip_us: float | None
    bandwidth_left_mbit: float | None
    """Of the interface that it comes by: its speed, less all that came by it. Of a tag whose transport is left to its
    keeper also of the senders' lines, where that is less."""
    cpu_left_percent: float | None
    """Of this node's cores."""


class ChannelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How the node that keeps a tag chose what carries it, as of its last look. `candidates` are the transports that
    keep what was promised, best first, each with the metric predicted, in times the best one's."""

    asked: str
    transport: str
    since_ns: int
    why: str
    """It was chosen then."""
    by: str
    """The model or rule that ranks now."""
    environment: str
    candidates: list[tuple[str, float]]
    values: list[float] = []
    """The metric itself, of each candidate, in `unit`: ms, B/s, or % (late or lost; delivered)."""
    unit: str = ""
    pinned: str = ""
    """What an administrator has them use instead, while that is so."""


class ChannelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast channels`, as the node at one end of it counts. `node` is the other end.

    What a publisher pushes by itself is counted where it arrives; there `messages`, `bytes` and `lost` of the outgoing
    channel are None.
    """

    direction: Literal["in", "out"]
    node: str
    tag: str
    incarnation: int
    """The publisher's."""
    transport: str
    every: int
    reliable: bool
    messages: int | None
    bytes: int | None
    lost: int | None
    counters: dict[str, int]
    """Everything else that this end counts: duplicates, late, and more."""
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    """What `every` follows; 0 when it is fixed."""
    priority: str = ""
    """What was asked for: class, DSCP and schedule as words; '' is normal."""
    in_force: InForce | None = None
    """What the kernel has; None of a transport that knows no priorities."""
    bound: str = ""
    """Of a tag with admitted deadlines: what its bound rests on, or why it is not backed, in words."""
    fidelity: str = ""
    """Of an incoming one for a subscriber with a range: what it may have, and what does not allow more."""
    receiver: Literal["", "daemon", "subscriber"] = ""
    """Of an incoming one: who receives it. A subscriber that is its node's only reader does it itself."""
    environment: ChannelEnvironment | None = None
    """Of an incoming one, as of the last second."""
    choices: list[ChannelChoice] = []
    """Of a tag whose transport is left to its keeper."""


class SettingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast config show`. `origin` is 'default', 'flag', 'environment', or the file and its line."""

    key: str
    value: str
    origin: str
