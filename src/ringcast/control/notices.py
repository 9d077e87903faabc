"""What a daemon tells a client without being asked. Notices carry no `id`."""

from __future__ import annotations

from ringcast.control.wire import ControlMessage
from ringcast.model.identity import Presence, PublisherInfo
from ringcast.model.tag import TagAttributes


class RingUp(ControlMessage, frozen=True, tag="ring_up"):
    """A ring to read. Descriptors: ring, bell. `born_after`: it is younger than the subscription.

    `ring` is the ring's own incarnation, which on a mirror is not its publisher's; `every` is what the ring has left of
    the stream: its messages are those whose number is a multiple of it. `size` is what they were scaled to on the way.
    With `pace`, read multiples of that, until `RingPaced` says otherwise. `next_seq` is the first number that was not
    sent yet when the subscription was granted, before anybody was told of it.
    """

    subscription: int
    info: PublisherInfo
    attributes: TagAttributes
    depth: int
    capacity_bytes: int
    born_after: bool
    ring: int
    next_seq: int
    every: int = 1
    size: tuple[int, int] | None = None
    pace: int = 0
    alive: bool = True
    held: bool = False
    """Say when it is attached: its writer waits for that."""
    unordered: bool = False
    """Its numbers are not ascending: messages are in it as they came."""
    first_seq: int = 0
    """The publisher's number with which the ring begins."""
    age_ns: int | None = None
    """How long ago its publisher came, if anybody knows: of one that is younger than the subscription, the reader
    should have had everything."""


class RingPaced(ControlMessage, frozen=True, tag="ring_paced"):
    """From now on read multiples of `pace` on this ring, for the rate you asked for."""

    subscription: int
    ring: int
    pace: int


class StageWanted(ControlMessage, frozen=True, tag="stage_wanted"):
    """Run a stage: read the ring from `first_seq` on, multiples of `every`, scale to `size`, write a ring of your own
    and answer with `StageUp` or `StageDown`. Descriptors: ring, bell; none for the publisher itself, who has them."""

    publisher: int
    stage: int
    attributes: TagAttributes
    size: tuple[int, int]
    every: int
    first_seq: int
    passed: int
    """How many that were due before it are lost: the stage before this one could not get past them."""
    reliable: bool
    ring: int
    depth: int
    capacity_bytes: int


class StageUnwanted(ControlMessage, frozen=True, tag="stage_unwanted"):
    """End the stage, when it has scaled what there is, and say so."""

    publisher: int
    stage: int


class RingDown(ControlMessage, frozen=True, tag="ring_down"):
    """A publisher left, or a mirror is filled no more; what the ring still holds may be read to the end. `end`: all
    that the publisher sent ends before this number, and no other ring will bring it."""

    subscription: int
    incarnation: int
    end: int | None = None


class StreamEnded(ControlMessage, frozen=True, tag="stream_ended"):
    """A publisher, by its own incarnation, left while nothing carried its stream here; what it sent ends before
    `end`."""

    subscription: int
    incarnation: int
    end: int


class TagGone(ControlMessage, frozen=True, tag="tag_gone"):
    """The tag was destroyed by force while you held rights on it."""

    name: str


class SubscriberCount(ControlMessage, frozen=True, tag="subscriber_count"):
    publisher: int
    count: int


class Presences(ControlMessage, frozen=True, tag="presences"):
    """What came and went, in that order. `anew`: this is the first of all that is there."""

    watch: int
    rows: list[Presence]
    anew: bool = False


Notice = (
    RingUp | RingDown | StreamEnded | RingPaced | StageWanted | StageUnwanted | TagGone | SubscriberCount | Presences
)
