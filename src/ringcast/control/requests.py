"""What a client asks its daemon for. Each request carries an `id`, which its answer repeats."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ringcast.control.service import Extent, Pull, Rate, Urgency
from ringcast.control.wire import PROTOCOL_VERSION, Numbered
from ringcast.model.declared import Declared
from ringcast.model.identity import PresenceKind
from ringcast.model.priority import Change
from ringcast.model.profile import Profile

Place = Annotated[str, msgspec.Meta(max_length=255)]
TransportName = Annotated[str, msgspec.Meta(max_length=255)]
MAX_PROFILES = 64
PositiveRate = Annotated[float, msgspec.Meta(ge=1e-6, le=1e9)]


class Hello(Numbered, frozen=True, tag="hello"):
    """First message of a session. Descriptors: the session's counter page (optional)."""

    version: int = PROTOCOL_VERSION
    program: str = ""


class OpenTag(Numbered, frozen=True, tag="open"):
    """Create or join. `requested` holds only the attributes that the caller named."""

    name: str
    requested: dict[str, Any] = {}
    create: bool = True


class DestroyTag(Numbered, frozen=True, tag="destroy"):
    name: str
    force: bool = False


class Publish(Numbered, frozen=True, tag="publish"):
    """Register a publisher. Descriptors: ring, bell, the daemon's end of the fan-out socket."""

    tag: str
    incarnation: int
    depth: int
    capacity_bytes: int
    declared: Declared | None = None
    offered: Profile | None = None
    instead: int = 0
    """The publisher of this client that this ring takes the place of, as `RingAnew` asked for; what is declared is the
    same."""


class Unpublish(Numbered, frozen=True, tag="unpublish"):
    publisher: int


class Subscribe(Numbered, frozen=True, tag="subscribe"):
    """Register a subscriber. Descriptors: a mailbox (when `mailbox`).

    A `RingUp` notice for each ring that is there comes before the answer. A history sees rings that outlived their
    publishers too, and does not count as a subscriber.
    """

    pattern: str
    subscription: int
    incarnation: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The same whenever this subscription is registered."""
    role: Literal["subscriber", "history"] = "subscriber"
    reliable: bool = False
    mailbox: bool = False
    counter_index: int = -1
    every: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1
    at: Place = "auto"
    transport: TransportName = ""
    start: Literal["new", "latest", "earliest"] | Annotated[int, msgspec.Meta(ge=0)] = "new"
    size: tuple[Extent, Extent] | None = None
    rate_hz: Rate = 0.0
    ordered: bool = True
    priority: Urgency = ""
    deadline_s: Rate = 0.0
    """From sending to receiving; 0 is none."""
    requested: Profile | None = None
    profiles: Annotated[list[Profile], msgspec.Meta(max_length=MAX_PROFILES)] = []
    """Those of the user's own file, one of which may fit where the requested one does not."""
    range_hz: tuple[PositiveRate, PositiveRate] | None = None
    """From the least to the most messages a second, for one that takes what fits; `rate_hz` is what it gets first."""
    range_size: tuple[tuple[Extent, Extent], tuple[Extent, Extent]] | None = None
    only_best: bool = False
    """Of the tags that the pattern selects, the one whose stream has the highest fidelity."""


class StageUp(Numbered, frozen=True, tag="stage_up"):
    """The stage that was wanted runs. Descriptors: its ring, its bell, the daemon's end of its fan-out socket."""

    stage: int
    incarnation: int
    depth: int
    capacity_bytes: int


class StageDown(Numbered, frozen=True, tag="stage_down"):
    """The stage ended, or cannot be: no scaler is installed here, say."""

    stage: int
    reason: str = ""


class IntakeUp(Numbered, frozen=True, tag="intake_up"):
    """The stream that was wanted can come. Descriptors: the mirror's ring, its bell, the daemon's end of its fan-out
    socket, the page of its counters."""

    intake: int
    incarnation: int


class IntakeDown(Numbered, frozen=True, tag="intake_down"):
    """The stream cannot be received here."""

    intake: int
    reason: str = ""


class Attached(Numbered, frozen=True, tag="attached"):
    """A ring that came with `held` has a reader now, for whose place the daemon has been waiting."""

    subscription: int
    ring: int


class Move(Numbered, frozen=True, tag="move"):
    """Have the streams of a subscription scaled elsewhere, and carried by another transport; None leaves one as it is.
    Answered when they come that way, or after a moment if they do not yet."""

    subscription: int
    at: Place | None = None
    transport: TransportName | None = None
    priority: Urgency | None = None
    dscp: Urgency | None = None
    sched: Urgency | None = None
    bandwidth: Urgency | None = None

    @property
    def urgency(self) -> Change:
        return Change(self.priority, self.dscp, self.sched, self.bandwidth)


class SetChannel(Numbered, frozen=True, tag="set"):
    """Administrative override for the channels of a tag to a node, or with `NODE#NUMBER` to one subscriber there ('' is
    every node): None leaves a value, '' removes it. `planned`: `at` is what a plan chose."""

    tag: str
    node: Annotated[str, msgspec.Meta(max_length=255)] = ""
    at: Place | None = None
    transport: TransportName | None = None
    planned: bool = False
    priority: Urgency | None = None
    dscp: Urgency | None = None
    sched: Urgency | None = None
    bandwidth: Urgency | None = None

    @property
    def urgency(self) -> Change:
        return Change(self.priority, self.dscp, self.sched, self.bandwidth)


class UseMailbox(Numbered, frozen=True, tag="mailbox"):
    """From now on publishers ring this mailbox for the subscription. Descriptors: the mailbox."""

    subscription: int


class Unsubscribe(Numbered, frozen=True, tag="unsubscribe"):
    subscription: int


class Watch(Numbered, frozen=True, tag="watch"):
    """Be told what comes and goes. `Presences` with all that is there come before the answer; a second request with
    the same number is given all again. A node matches any pattern."""

    watch: int
    kinds: Annotated[list[PresenceKind], msgspec.Meta(max_length=3)]
    pattern: str = "**"


class Unwatch(Numbered, frozen=True, tag="unwatch"):
    watch: int


class ListTags(Numbered, frozen=True, tag="list_tags"):
    pattern: str = "**"
    local: bool = False


class ListPublishers(Numbered, frozen=True, tag="list_publishers"):
    tag: str


class ListSubscribers(Numbered, frozen=True, tag="list_subscribers"):
    """Of every node; with `local`, of this one only."""

    tag: str
    local: bool = False


class ListNodes(Numbered, frozen=True, tag="list_nodes"):
    clock: str = ""
    """A node whose clock is asked about: it is probed closely for a while."""


class ListChannels(Numbered, frozen=True, tag="list_channels"):
    """`why`: with the reasons for which transports were chosen, which other nodes are asked for."""

    why: bool = False


class ObserveMesh(Numbered, frozen=True, tag="observe_mesh"):
    """What does the mesh look like to one who places proxies? `measured`: ask the other nodes too, for rates and
    distances; without, only who subscribes to what and where proxies sit."""

    measured: bool = True


class LoadModel(Numbered, frozen=True, tag="load_model"):
    """Choose transports by this model from now on, on every node that has none later. Descriptors: the file."""


class ListHistories(Numbered, frozen=True, tag="list_histories"):
    """Whose messages of a tag can be pulled, on whichever node; answered with a PublisherListing."""

    tag: str


class PullHistory(Numbered, frozen=True, tag="pull"):
    """Read rings that may be another node's. `at` is "publisher", "subscriber" or "node:NAME"."""

    at: Annotated[str, msgspec.Meta(max_length=255)]
    query: Pull


class HoldBuffer(Numbered, frozen=True, tag="hold"):
    """Hold so many messages of a tag's publishers for a history, on this node (`at` "subscriber") or a named one; none
    with a depth of 0. `buffer` is the client's own number for it. With `period_s` the history declares that it pulls
    at most so often and, with `max_age_s`, how old the newest message may be that it gets; 0 is any age."""

    buffer: int
    tag: str
    at: Place
    depth: Annotated[int, msgspec.Meta(ge=0, le=2**24)]
    every: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1
    period_s: Rate = 0.0
    max_age_s: Rate = 0.0


class DropBuffer(Numbered, frozen=True, tag="drop"):
    buffer: int


class ReportRefusal(Numbered, frozen=True, tag="report_refusal"):
    """This program refused something to somebody whom it serves, so many times: the daemon's audit records it."""

    who: Place
    action: Place
    what: Place = ""
    reason: Place = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1


class GetStatus(Numbered, frozen=True, tag="status"):
    pass


class GetSettings(Numbered, frozen=True, tag="settings"):
    pass


class Bye(Numbered, frozen=True, tag="bye"):
    pass


Request = (
    Hello | OpenTag | DestroyTag | Publish | Unpublish | Subscribe | UseMailbox | Unsubscribe | Attached | Move
    | SetChannel | Watch | Unwatch | StageUp | StageDown | IntakeUp | IntakeDown
    | ListTags | ListPublishers | ListSubscribers | ListNodes | ListChannels | ListHistories
    | PullHistory | HoldBuffer | DropBuffer | ObserveMesh | LoadModel
    | ReportRefusal | GetStatus | GetSettings | Bye
)  # fmt: skip
