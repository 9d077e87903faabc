"""What daemons tell each other so that the keeper of a tag can choose its transport, and by which models. Values.

Each daemon reports on what comes to its own node. Models travel whole: of two for the same metric, the later one is in
force everywhere a moment after the nodes met.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ringcast.control.limits import MAX_CHOICES_PER_TAG, MAX_WHY_CHARS
from ringcast.control.peering import Name

HEARD = "choosing.heard"
EXPLAIN = "choosing.explain"
MODEL = "choosing.model"
MODELS = "choosing.models"
MOST_MODEL_BYTES = 4 << 20
MOST_EXPLAINED = 64
"""Tags in one question: an explanation has some two kilobytes."""
_MOST = 4096

Count = Annotated[int, Meta(ge=0, le=2**62)]
Amount = Annotated[float, Meta(ge=0.0, le=1e15)]
Text = Annotated[str, Meta(max_length=400)]
Long = Annotated[str, Meta(max_length=MAX_WHY_CHARS)]


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """One receiving node's counters of one publisher's stream. `skipped` messages had not come when a later one was
    heard of, in `gaps` runs; `hidden`: losses are repaired where nobody can count them."""

    incarnation: Annotated[int, Meta(ge=0)]
    transport: Text
    messages: Count
    bytes: Count
    lost: Count
    skipped: Count = 0
    gaps: Count = 0
    hidden: bool = False
    delay_ns: Annotated[int, Meta(ge=0)] = 0
    """How long all messages took together; 0 where clocks do not say."""
    packets: Count = 0
    """Datagrams that came, repairs and all; 0 where nobody counts them: then each message is one."""


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """What a node tells of a tag: counters of what it receives, twice the shortest way from the publishers' nodes, and
    bytes per second of the interface that leads there; 0 where that is not known. Of what it sends, counters only where
    losses are seen there alone: `messages` are segments, of which `skipped` were sent again; and how fast the slowest
    line is by which it sends, with what leaves by that, in bytes per second."""

    node: Name
    channels: Annotated[list[Counted], Meta(max_length=_MOST)]
    round_trip_s: Annotated[float, Meta(ge=0.0, le=60.0)] = 0.0
    bandwidth: Amount = 0.0
    """Of the interface, less what other streams take of it."""
    sent: Annotated[list[Counted], Meta(max_length=_MOST)] = []
    line: Amount = 0.0
    """Also 0 where it sends nothing, and of older daemons."""
    leaves: Amount = 0.0
    """All that leaves by the line, also this tag's messages."""
    streams: Annotated[int, Meta(ge=0, le=_MOST)] = 0
    """Publishers of the tag that send by it; 0 also of older daemons."""


class Explained(msgspec.Struct, frozen=True, array_like=True):
    """A choice as its keeper tells it (`control.status.ChannelChoice`)."""

    asked: Text
    transport: Text
    since_ns: Count
    why: Long
    by: Long
    environment: Long
    candidates: Annotated[list[tuple[Text, Amount]], Meta(max_length=64)]
    values: Annotated[list[Amount], Meta(max_length=64)] = []
    unit: Text = ""
    pinned: Long = ""


class AskExplained(msgspec.Struct, frozen=True, kw_only=True):
    tags: Annotated[list[Text], Meta(max_length=MOST_EXPLAINED)]


class AllExplained(msgspec.Struct, frozen=True, kw_only=True):
    """By tag, for each way in which it was asked for; without those that the node does not keep."""

    tags: Annotated[dict[Text, Annotated[list[Explained], Meta(max_length=MAX_CHOICES_PER_TAG)]],
                    Meta(max_length=MOST_EXPLAINED)]  # fmt: skip


class AskHeard(msgspec.Struct, frozen=True, kw_only=True):
    """`lines` is what is left of the senders' lines for each tag, in bytes per second, where somebody told of them."""

    tags: Annotated[list[Text], Meta(max_length=_MOST)]
    lines: Annotated[dict[Text, Amount], Meta(max_length=_MOST)] = {}


class AllHeard(msgspec.Struct, frozen=True, kw_only=True):
    """By tag; and which models are here: when each was loaded (UTC in ns), by metric."""

    tags: Annotated[dict[Text, Heard], Meta(max_length=_MOST)]
    models: Annotated[dict[Text, Count], Meta(max_length=64)] = {}


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Which models a node has: when each was loaded (UTC in ns), by metric. The answer has those of the other node,
    after it took what it lacked."""

    models: Annotated[dict[Text, Count], Meta(max_length=64)] = {}


class AskModel(msgspec.Struct, frozen=True, kw_only=True):
    metric: Text


class WholeModel(msgspec.Struct, frozen=True, kw_only=True):
    """Without `data` there is none."""

    loaded_ns: Count
    data: Annotated[bytes, Meta(max_length=MOST_MODEL_BYTES)]


class Lived(msgspec.Struct, frozen=True, kw_only=True):
    """What the keeper of a tag tells on `@ringcast/<node>/choices` after each look: in what environment the tag was,
    what carried it there, and what that cost since the look before. `predicted` is the cost of it in times the best
    candidate's, by `by`."""

    taken_ns: Annotated[int, Meta(description="UTC")]
    tag: str
    asked: str
    transport: str
    receivers: int
    loss_percent: float
    burst: float
    rate_hz: float
    payload_bytes: float
    delay_us: float
    bandwidth_mbit: float
    messages: int
    lost: int
    delivered: Annotated[float, Meta(description="percent")]
    latency_mean: Annotated[float, Meta(description="ms; 0 where clocks do not say")]
    relate2: Annotated[float, Meta(description="ms; 0 where clocks do not say")]
    predicted: float
    by: str
    changed_to: str
    """What carries it from now on, where that is something else."""
