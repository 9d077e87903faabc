"""What clients of this node hold: rings they publish on, subscriptions, mailboxes. Values with identity, no rules.

The rules are in `ringcast.daemon.clients.local`. `Core` is the part of the native module that the daemon uses; tests
give a fake one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from msgspec.structs import replace

from ringcast.control.descriptor import Descriptor
from ringcast.control.messages import (
    RingUp,
    StageUp,
)
from ringcast.control.status import PublisherStatus, SubscriberStatus
from ringcast.daemon.rings.fanout import FanOut, Mailbox
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import BadMessage
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import AUTO, Wanted
from ringcast.model.tag import TagAttributes
from ringcast.transport import find
from ringcast.transport.interface import Mirror

MESH = -1
"""Stands for a client where there is none: the owner of a mirror is the mesh. No client has this number: connections
are numbered from 1, and 0 is the daemon itself (`ringcast.daemon.clients.local.OWN_CLIENT`)."""


class Monitor(Protocol):
    @property
    def next_seq(self) -> int: ...
    @property
    def age_ns(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def last_sent_ns(self) -> int: ...
    def bump_fanout(self) -> None: ...
    def take_fanout_fd(self) -> int: ...
    def free_slots(self, pid: int) -> int: ...
    def place(self) -> int | None: ...
    def free_orphan(self) -> bool: ...
    def free_lapsed_orphans(self) -> int: ...
    def close(self) -> None: ...


class Counters(Protocol):
    def counters(self, index: int) -> dict[str, int]: ...
    def latency_histogram(self, index: int) -> list[int]: ...


class Hold(Protocol):
    def attach(
        self, ring_fd: int, bell_fd: int, *, depth: int, capacity_bytes: int, incarnation: int, start: int
    ) -> object: ...
    def close(self) -> None: ...


class Core(Protocol):
    @property
    def START_EARLIEST(self) -> int: ...
    def RingReader(self, *, reliable: bool, what: str) -> Hold: ...
    def RingMonitor(
        self, ring_fd: int, bell_fd: int, *, depth: int, capacity_bytes: int, incarnation: int
    ) -> Monitor: ...
    def CounterView(self, fd: int) -> Counters: ...
    def ring_memory_bytes(self, depth: int, capacity_bytes: int) -> int: ...


Reader = tuple[int, int] | str
"""A subscription by its client and number, or another node."""


class Ring:
    """A ring of this node; `owner` is the client that publishes on it, None once it outlived its publisher.

    Raises BadMessage when the third descriptor is no fan-out socket.
    """

    def __init__(
        self, row: PublisherRow, owner: int, attributes: TagAttributes, fds: list[Descriptor], monitor: Monitor
    ) -> None:
        self.row = row
        self.owner: int | None = owner
        self.attributes = attributes
        self.fds = (fds[0], fds[1])
        self.monitor = monitor
        try:
            self.fanout = FanOut(fds[2], monitor.bump_fanout, Descriptor(monitor.take_fanout_fd()))
        except BadMessage:
            monitor.close()
            raise
        self.plain_for: set[Wish] = set()
        """What nobody here can make of it: such subscribers get it as it is and scale for themselves."""
        self.announced = 0
        """Subscribers the publisher was last told of."""
        self.readers: set[tuple[int, int]] = set()
        """The (client, subscription)s that were shown it and have not been shown what continues it."""
        self.untaken: set[str] = set()
        """Other nodes with subscribers that have not said yet that they have channels from it."""
        self.awaited: set[Reader] = set()
        """Who has asked for all of it and has no place in it yet."""
        self._hold: Hold | None = None
        """A place in the ring kept for them."""

    @property
    def info(self) -> PublisherInfo:
        return self.row.info

    @property
    def number(self) -> int:
        return self.row.info.id

    @property
    def ring(self) -> int:
        """The ring's own incarnation."""
        return self.row.info.incarnation

    def memory_bytes(self, core: Core) -> int:
        """What it takes of the node's budget."""
        return core.ring_memory_bytes(self.row.depth, self.row.capacity_bytes)

    @property
    def next_seq(self) -> int:
        """The publisher's number of the message that comes next."""
        return self.monitor.next_seq

    @property
    def fresh_seq(self) -> int:
        """The first number that its publisher has not sent, as far as this node knows."""
        return self.next_seq

    @property
    def first_seq(self) -> int:
        """The publisher's number with which the ring begins."""
        return 0

    @property
    def age_ns(self) -> int | None:
        """How long ago its publisher came, if that is known."""
        return self.monitor.age_ns

    @property
    def every(self) -> int:
        """What the ring has left of the stream."""
        return 1

    @property
    def size(self) -> tuple[int, int] | None:
        """What its messages were scaled to."""
        return None

    @property
    def foreign(self) -> bool:
        """True for a mirror: the publisher, and its row in the table, are another node's."""
        return False

    @property
    def unordered(self) -> bool:
        """True for a mirror whose messages are as they came."""
        return False

    @property
    def way_ns(self) -> int:
        """How long messages of late took at most from the publisher's node to this one, as far as the clocks agree."""
        return 0

    @property
    def held(self) -> bool:
        """True while nothing in it is overwritten, because reliable readers are on their way."""
        return self._hold is not None

    @property
    def tag(self) -> str:
        return self.row.info.tag

    @property
    def alive(self) -> bool:
        return self.owner is not None

    def keep(self, core: Core) -> None:
        """Overwrite nothing until everybody who is awaited has a place in the ring. Raises CorruptRing, QosMismatch
        (all places are taken)."""
        if self._hold is None:
            holder = core.RingReader(reliable=True, what="hold")
            holder.attach(
                self.fds[0].fileno(), self.fds[1].fileno(), depth=self.row.depth,
                capacity_bytes=self.row.capacity_bytes, incarnation=self.ring, start=core.START_EARLIEST,
            )  # fmt: skip
            self._hold = holder

    def forget_reader(self, key: tuple[int, int]) -> None:
        self.readers.discard(key)
        self.attached(key)

    def attached(self, key: Reader) -> None:
        """A reader that was waited for has a place in the ring, or wants none any more."""
        if key in self.awaited:
            self.awaited.discard(key)
            if not self.awaited:
                self.let_go()

    def let_go(self) -> None:
        if self._hold is not None:
            self._hold.close()
            self._hold = None

    def close(self) -> None:
        self.let_go()
        self.fanout.close()
        self.monitor.close()

    def up(self, subscription: int, *, born_after: bool, pace: int = 0) -> RingUp:
        return RingUp(
            subscription=subscription, info=self.info, attributes=self.attributes, depth=self.row.depth,
            capacity_bytes=self.row.capacity_bytes, born_after=born_after, ring=self.ring,
            next_seq=self.fresh_seq, every=self.every, size=self.size, pace=pace, alive=self.alive, held=self.held,
            unordered=self.unordered, first_seq=self.first_seq, age_ns=self.age_ns,
        )  # fmt: skip

    def status(self) -> PublisherStatus:
        return PublisherStatus(
            info=self.info, alive=self.alive, counters=self.monitor.counters(), last_sent_ns=self.monitor.last_sent_ns()
        )  # fmt: skip


class Asked(NamedTuple):
    """What a subscriber asked for; `at` may be "auto" and `transport` empty."""

    every: int = 1
    at: str = AUTO
    transport: str = ""
    reliable: bool = False
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    ordered: bool = True

    @property
    def wanted(self) -> Wanted:
        """What other nodes are told of it."""
        return Wanted(every=self.every, at=self.at, size=self.size, rate_hz=self.rate_hz)


class Demand(NamedTuple):
    """How a subscriber wants streams of other nodes. Equal demands on a node share channels and mirrors."""

    every: int = 1
    at: str = "publisher"
    transport: str = "udp"
    reliable: bool = False
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    depth: int = 0
    """Of a pull buffer, how many messages it holds; 0 is as many as the publisher's ring does."""


class MirrorRing(Ring):
    """A remote publisher's stream on this node, made for subscriptions of one demand."""

    def __init__(
        self, number: int, row: PublisherRow, attributes: TagAttributes, fds: list[Descriptor], monitor: Monitor,
        *, mirror: Mirror, every: int, demand: Demand, first_seq: int = 0, older_ns: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(row, MESH, attributes, fds, monitor)
        self._number = number
        self._mirror = mirror
        self._every = every
        self._first_seq = first_seq
        self._older_ns = older_ns
        """By how much its publisher is older than the mirror."""
        self.demand = demand

    @property
    def number(self) -> int:
        return self._number

    @property
    def ring(self) -> int:
        return self._mirror.incarnation

    def memory_bytes(self, core: Core) -> int:
        return self._mirror.memory_bytes

    @property
    def next_seq(self) -> int:
        return self._mirror.next_seq

    @property
    def first_seq(self) -> int:
        return self._first_seq

    @property
    def age_ns(self) -> int | None:
        return None if self._older_ns is None else self._older_ns + self.monitor.age_ns

    @property
    def every(self) -> int:
        return self._every

    @property
    def size(self) -> tuple[int, int] | None:
        return self.demand.size

    @property
    def foreign(self) -> bool:
        return True

    @property
    def way_ns(self) -> int:
        return max(0, self._mirror.counters().get("most_delay_ns", 0))

    @property
    def unordered(self) -> bool:
        return not find(self.demand.transport).promises.ordered


class Wish(NamedTuple):
    """A publisher's stream as a stage on this node makes it. Equal wishes share one stage and one ring."""

    incarnation: int
    size: tuple[int, int]
    every: int = 1
    rate_hz: float = 0.0
    here: bool = False
    """In a process of its own on this node, and not in the publisher's."""
    reliable: bool = False
    """The source waits for the stage; one in the publisher's process never falls behind."""


class DerivedRing(Ring):
    """What a stage writes: the scaled stream of `base`, a publisher's own ring or a mirror. `newest` is the publisher's
    number of the newest message in it, -1 when it is empty."""

    def __init__(
        self, number: int, base: Ring, wish: Wish, every: int, first_seq: int, stage: StageUp, fds: list[Descriptor],
        monitor: Monitor, newest: Callable[[], int],
    ) -> None:  # fmt: skip
        row = replace(base.row, depth=stage.depth, capacity_bytes=stage.capacity_bytes)
        super().__init__(row, MESH, base.attributes, fds, monitor)
        self._number = number
        self._ring = stage.incarnation
        self._every = every
        self._first_seq = first_seq
        self._newest = newest
        self.base = base
        self.wish = wish

    @property
    def number(self) -> int:
        return self._number

    @property
    def ring(self) -> int:
        return self._ring

    @property
    def next_seq(self) -> int:
        return max(self._first_seq, self._newest() + 1)

    @property
    def first_seq(self) -> int:
        return self._first_seq

    @property
    def age_ns(self) -> int | None:
        return self.base.age_ns

    @property
    def fresh_seq(self) -> int:
        return max(self.next_seq, self.base.next_seq)

    @property
    def every(self) -> int:
        return self._every

    @property
    def size(self) -> tuple[int, int]:
        return self.wish.size

    @property
    def foreign(self) -> bool:
        return True


def wish_of(row: PublisherRow, demand: Demand, node: str) -> Wish | None:
    """What has to be made on this node for subscribers here that want a publisher's stream so; None when nothing."""
    own = row.owner == node
    if demand.size is None or not (own or demand.at == f"node:{node}"):
        return None
    here = demand.at.startswith("node:")
    return Wish(
        row.info.incarnation, demand.size, demand.every, demand.rate_hz, here, reliable=here and demand.reliable
    )


class Subscription:
    """A subscription or, with role history, a reader that is nobody's subscriber. `number` is its client's choice."""

    def __init__(
        self,
        client: Client,
        number: int,
        info: SubscriberInfo,
        role: Literal["subscriber", "history"],
        counter_index: int,
        asked: Asked = Asked(),
    ) -> None:
        self.asked = asked
        self.client = client
        self.number = number
        self.info = info
        self.role = role
        self.mailbox: Mailbox | None = None
        self.pace_told: dict[int, int] = {}
        """The factor last told, by ring."""
        self._counter_index = counter_index

    @property
    def pattern(self) -> str:
        return self.info.pattern

    @property
    def counts(self) -> bool:
        return self.role == "subscriber"

    @property
    def key(self) -> tuple[int, int]:
        return self.client.number, self.number

    @property
    def reliable(self) -> bool:
        return self.counts and self.asked.reliable

    @property
    def rate_hz(self) -> float:
        """What it is to get at most, where nothing on the way sees to that."""
        return self.asked.rate_hz if self.counts else 0.0

    def reads(self, ring: Ring) -> bool:
        """Whether it was shown the ring, and nothing that continues it."""
        return self.key in ring.readers

    def accepts(self, ring: Ring, demand: Demand) -> bool:
        """Own publishers' rings are for those who scale for themselves, a mirror and what a stage makes for those who
        asked for it. `demand` is how the subscription wants the ring's tag."""
        if isinstance(ring, DerivedRing):
            return self.counts and wish_of(ring.row, demand, self.info.node) == ring.wish
        if isinstance(ring, MirrorRing):
            return self.counts and ring.demand == demand
        return demand.size is None or wish_of(ring.row, demand, self.info.node) in ring.plain_for

    def paces(self, ring: Ring) -> bool:
        """Whether the reader itself is to leave messages out, for its rate."""
        return (
            self.rate_hz > 0
            and not isinstance(ring, DerivedRing)
            and ring.every == 1
            and not (isinstance(ring, MirrorRing) and ring.demand.rate_hz)
        )

    def status(self) -> SubscriberStatus:
        counters: dict[str, int] = {}
        latency: list[int] = []
        if self.client.counters is not None and self._counter_index >= 0:
            try:
                counters = self.client.counters.counters(self._counter_index)
                latency = self.client.counters.latency_histogram(self._counter_index)
            except (IndexError, TypeError, ValueError):  # the index is the client's word
                pass
        return SubscriberStatus(info=self.info, counters=counters, latency=latency, wanted=self.asked.wanted)


class Client:
    """A session, as SO_PEERCRED and its greeting describe it, and what it holds."""

    def __init__(self, number: int, pid: int, user: str, program: str, counters: Counters | None) -> None:
        self.number = number
        self.pid = pid
        self.user = user
        self.program = program
        self.counters = counters
        self.rings: dict[int, Ring] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._mailboxes: weakref.WeakValueDictionary[tuple[int, int], Mailbox] = weakref.WeakValueDictionary()

    def mailbox(self, descriptor: Descriptor, number: int) -> Mailbox:
        """The mailbox behind the descriptor: the one known already, so that publishers ring it once, or a new one."""
        file = descriptor.same_file()
        known = self._mailboxes.get(file)
        if known is None:
            known = self._mailboxes[file] = Mailbox(number, descriptor)
        return known
