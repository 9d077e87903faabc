"""What a daemon tells a client without being asked. Notices carry no `id`."""

from __future__ import annotations

from ringcast.control.answers import Refused
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
    """Its sequence numbers do not ascend: messages are stored in order of arrival."""
    first_seq: int = 0
    """The publisher's sequence number of the first message in the ring."""
    priority: str = ""
    """How urgently it comes from another node: threads that read it take its schedule."""
    begin: int | None = None
    """Read from this number on, whatever was asked for: what came before stood on another tag."""
    age_ns: int | None = None
    """The publisher's age, if known. A reader should have had everything from a publisher younger than its
    subscription."""


class RingPaced(ControlMessage, frozen=True, tag="ring_paced"):
    """From now on read multiples of `pace` on this ring, for the rate you asked for."""

    subscription: int
    ring: int
    pace: int


class FidelityNow(ControlMessage, frozen=True, tag="fidelity"):
    """What a subscription with a range has from now on. `why` is what does not allow more; '' with the best of it."""

    subscription: int
    rate_hz: float = 0.0
    size: tuple[int, int] | None = None
    why: str = ""


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
    """How many due messages before `first_seq` are lost: the previous stage crashed on them."""
    reliable: bool
    ring: int
    depth: int
    capacity_bytes: int


class StageUnwanted(ControlMessage, frozen=True, tag="stage_unwanted"):
    """Scale what there is, then end the stage and say so."""

    publisher: int
    stage: int


class IntakeWanted(ControlMessage, frozen=True, tag="intake_wanted"):
    """Receive a stream of another node yourself, for this subscription: you are its only reader here. Make the mirror
    and answer with `IntakeUp` or `IntakeDown`. Descriptors: the socket that it comes to, the page of the sender's
    clock, and with `before` the ring of the mirror that the new one takes the place of."""

    subscription: int
    intake: int
    channel: bytes
    """`ringcast.transport.Channel`, encoded."""
    before: tuple[int, int, int] | None = None
    """Depth, capacity and incarnation: begin with what that ring holds."""


class IntakeUnwanted(ControlMessage, frozen=True, tag="intake_unwanted"):
    """Receive it no more. What the mirror holds may be read to the end."""

    subscription: int
    intake: int


class RingDown(ControlMessage, frozen=True, tag="ring_down"):
    """A publisher left, or a mirror is filled no more; what the ring still holds may be read to the end. `end`: all
    that the publisher sent ends before this number, and no other ring will bring it."""

    subscription: int
    incarnation: int
    end: int | None = None
    instead: bool = False
    """Another tag's stream is received from here on: what follows is not lost."""


class StreamEnded(ControlMessage, frozen=True, tag="stream_ended"):
    """A publisher, by its own incarnation, left while nothing carried its stream here; what it sent ends before
    `end`."""

    subscription: int
    incarnation: int
    end: int


class TagGone(ControlMessage, frozen=True, tag="tag_gone"):
    """The tag was destroyed by force while you were registered on it."""

    name: str


class RightTaken(ControlMessage, frozen=True, tag="right_taken"):
    """The rules of the node changed, and the publisher or the subscription ended with them; 0 is none."""

    why: Refused
    publisher: int = 0
    subscription: int = 0


class RingAnew(ControlMessage, frozen=True, tag="ring_anew"):
    """Somebody who reads your ring may not do so any longer: publish another one, go on there, and unpublish this."""

    publisher: int


class SubscriberCount(ControlMessage, frozen=True, tag="subscriber_count"):
    publisher: int
    count: int


class Presences(ControlMessage, frozen=True, tag="presences"):
    """What came and went, in that order. `anew`: a full list begins with this packet."""

    watch: int
    rows: list[Presence]
    anew: bool = False


Notice = (
    RingUp
    | RingDown
    | StreamEnded
    | RingPaced
    | FidelityNow
    | StageWanted
    | StageUnwanted
    | IntakeWanted
    | IntakeUnwanted
    | TagGone
    | SubscriberCount
    | Presences
    | RightTaken
    | RingAnew
)
