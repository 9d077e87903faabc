"""What daemons tell each other so that proxies can be placed, and what `ringcast place --live` is told. Values.

Each daemon reports on its own node only: how fast its publishers send, how far others are, what CPU it may spend.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ringcast.control.peering import Name
from ringcast.model.place import Wanted

REPORT = "placing.report"
PROBE = "placing.probe"
MAX_HOPS = 64
_MOST = 65536

Amount = Annotated[float, Meta(ge=0.0, le=1e15)]
Text = Annotated[str, Meta(max_length=255)]
Side = Annotated[int, Meta(ge=1, le=2**20)]


class TagRate(msgspec.Struct, frozen=True, array_like=True):
    """Messages a second of all publishers of a tag on the node, and their mean size in bytes."""

    tag: Text
    hz: Amount
    bytes: Amount


class ScaledSize(msgspec.Struct, frozen=True, array_like=True):
    """What messages of a tag have when they are scaled to a size, in bytes, as they came here."""

    tag: Text
    size: tuple[Side, Side]
    bytes: Amount


class Way(msgspec.Struct, frozen=True, array_like=True):
    """From the node that reports to another: hops (1: no router between), the shortest round trip seen, and bytes per
    second of the interface that leads there; 0 where it does not say."""

    node: Name
    hops: Annotated[int, Meta(ge=1, le=MAX_HOPS)]
    round_trip_s: Annotated[float, Meta(ge=0.0, le=60.0)]
    bandwidth: Amount = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu_share` is what streams may take here, in cores; None is unlimited. `load` is runnable tasks per core."""

    node: Name
    cpu_share: Amount | None = None
    load: Amount = 0.0
    rates: Annotated[list[TagRate], Meta(max_length=_MOST)] = []
    sizes: Annotated[list[ScaledSize], Meta(max_length=_MOST)] = []
    ways: Annotated[list[Way], Meta(max_length=_MOST)] = []


class AskReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report on yourself. `ways`: measure how far others are, too."""

    ways: bool = True


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Send me a datagram to this port with `key` in it and a time to live of 64, so that I see how many hops it took;
    port 0: only answer."""

    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    key: Annotated[int, Meta(ge=0, le=2**62)] = 0


class SubscriberPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A subscriber of a tag on another node than its publisher, and where its proxy is now: by whose word, and why."""

    tag: str
    node: str
    id: int
    wanted: Wanted
    at: str
    by: str
    overrides: str = ""
    why: str = ""
    keeper: str = ""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """A running mesh: who is here and what each reported, and who subscribes to what."""

    nodes: list[str]
    reports: list[Report]
    subscribers: list[SubscriberPlace]
    unanswered: list[str] = []
    """Nodes that are here and gave no report in time."""
