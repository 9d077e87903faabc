"""A ring of this node: a publisher's own, a mirror of another node's, or what a stage makes. No rules.

Who is shown which ring is decided in `ringcast.daemon.rings.sharing`. `Core` is the part of the native module that the
daemon uses; tests give a fake one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import RingUp
from ringcast.control.requests import StageUp
from ringcast.control.status import PublisherStatus
from ringcast.daemon.rings.demand import Demand, StageSpec
from ringcast.daemon.rings.fanout import FanOut
from ringcast.daemon.rings.kept_files import KeptFile
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import BadMessage
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes
from ringcast.security.rules import Who
from ringcast.transport import find
from ringcast.transport.interface import Mirror

MESH = -1
"""Owner of mirrors and derived rings: no client has this number."""


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
        self.uid: int | None = None
        """The user to whom it counts while its publisher is here."""
        self.attributes = attributes
        self.files = (KeptFile(fds[0]), KeptFile(fds[1]))
        """The ring's memory, and its bell's."""
        self.monitor = monitor
        try:
            self.fanout = FanOut(fds[2], monitor.bump_fanout, Descriptor(monitor.take_fanout_fd()))
        except BadMessage:
            monitor.close()
            raise
        self.plain_for: set[StageSpec] = set()
        """Specs that no stage can make of it: those subscribers get the unscaled ring and scale for themselves."""
        self.announced = 0
        """Subscribers the publisher was last told of."""
        self.readers: set[tuple[int, int]] = set()
        """The (client, subscription)s that were shown it and have not been shown what continues it."""
        self.shown_to: set[Who] = set()
        """Programs that were ever given its descriptors: they can read it as long as it is written."""
        self.untaken: set[str] = set()
        """Other nodes with subscribers that have not said yet that they have channels from it."""
        self.awaited: set[Reader] = set()
        """Reliable readers that have no place in it yet."""
        self.closed = False
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
        """The publisher's sequence number of the next message."""
        return self.monitor.next_seq

    @property
    def fresh_seq(self) -> int:
        """The first number that its publisher has not sent, as far as this node knows."""
        return self.next_seq

    @property
    def first_seq(self) -> int:
        """The publisher's sequence number of the first message in the ring."""
        return 0

    @property
    def age_ns(self) -> int | None:
        """The publisher's age, if known."""
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
    def priority(self) -> str:
        """How urgently it comes from another node."""
        return ""

    @property
    def unordered(self) -> bool:
        """True for a mirror that stores messages in order of arrival."""
        return False

    @property
    def way_ns(self) -> int:
        """How long messages of late took at most from the publisher's node to this one, as far as the clocks agree."""
        return 0

    @property
    def held(self) -> bool:
        """True while nothing in it is overwritten, because reliable readers are about to attach."""
        return self._hold is not None

    @property
    def tag(self) -> str:
        return self.row.info.tag

    @property
    def alive(self) -> bool:
        return self.owner is not None

    def keep(self, core: Core) -> None:
        """Overwrite nothing until everybody who is awaited has a place in the ring. Raises CorruptRing, ResourceLimit,
        QosMismatch (all places are taken)."""
        if self._hold is None:
            holder = core.RingReader(reliable=True, what="hold")
            memory, bell = (file.open() for file in self.files)
            holder.attach(
                memory.fileno(), bell.fileno(), depth=self.row.depth,
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
        self.closed = True
        self.let_go()
        self.fanout.close()
        self.monitor.close()

    def up(self, subscription: int, *, born_after: bool, pace: int = 0, begin: int | None = None) -> RingUp:
        return RingUp(
            subscription=subscription, info=self.info, attributes=self.attributes, depth=self.row.depth,
            capacity_bytes=self.row.capacity_bytes, born_after=born_after, ring=self.ring,
            next_seq=self.fresh_seq, every=self.every, size=self.size, pace=pace, alive=self.alive, held=self.held,
            unordered=self.unordered, first_seq=self.first_seq, age_ns=self.age_ns, priority=self.priority,
            begin=begin,
        )  # fmt: skip

    def status(self) -> PublisherStatus:
        return PublisherStatus(
            info=self.info, alive=self.alive, counters=self.monitor.counters(),
            last_sent_ns=self.monitor.last_sent_ns(), declared=self.row.declared,
        )  # fmt: skip


class MirrorRing(Ring):
    """A remote publisher's stream on this node, made for subscriptions of one demand."""

    def __init__(
        self, number: int, row: PublisherRow, attributes: TagAttributes, fds: list[Descriptor], monitor: Monitor,
        *, mirror: Mirror, every: int, demand: Demand, first_seq: int = 0, older_ns: int | None = None,
        trusted: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(row, MESH, attributes, fds, monitor)
        self._number = number
        self._mirror = mirror
        self._every = every
        self._first_seq = first_seq
        self._older_ns = older_ns
        """By how much its publisher is older than the mirror."""
        self.demand = demand
        self.trusted = trusted
        """Whether programs of other users may read it: whoever writes it could write anything."""
        self.unheard = 0
        """Messages that were sent, and of which nothing comes (`ringcast.daemon.fidelity.silence`)."""

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
    def came(self) -> tuple[int, int]:
        """Packets with messages, or parts of messages, that came; and messages that became whole of them."""
        counters = self._mirror.counters()
        return counters.get("datagrams", 0), counters.get("messages", 0)

    @property
    def priority(self) -> str:
        return self.demand.priority

    @property
    def unordered(self) -> bool:
        return not find(self.demand.transport).promises.ordered


class DerivedRing(Ring):
    """What a stage writes: the scaled stream of `base`, a publisher's own ring or a mirror. `newest` is the publisher's
    number of the newest message in it, -1 when it is empty."""

    def __init__(
        self, number: int, base: Ring, spec: StageSpec, every: int, first_seq: int, stage: StageUp,
        fds: list[Descriptor], monitor: Monitor, newest: Callable[[], int],
    ) -> None:  # fmt: skip
        row = replace(base.row, depth=stage.depth, capacity_bytes=stage.capacity_bytes)
        super().__init__(row, MESH, base.attributes, fds, monitor)
        self._number = number
        self._ring = stage.incarnation
        self._every = every
        self._first_seq = first_seq
        self._newest = newest
        self.base = base
        self.spec = spec

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
        return self.spec.size

    @property
    def foreign(self) -> bool:
        return True
