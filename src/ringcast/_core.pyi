"""The native core: rings, cursors and their waiting. Checked against the built module by stubtest.

Nothing here allocates, locks or logs on the per-message path beyond the one uncontended mutex of a writer. Every
object made before a fork raises ForkedError in the child.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from ringcast.model.identity import PublisherInfo

_T_co = TypeVar("_T_co", default=object, covariant=True)

PAGE_BYTES: Final[int]
LATENCY_BUCKETS: Final[int]
MAILBOX_BITS: Final[int]
RELIABLE_SLOTS: Final[int]

START_NEW: Final[int]
"""Begin after what the ring holds at the moment of attaching."""
START_LATEST: Final[int]
"""Begin with the newest message held."""
START_EARLIEST: Final[int]
"""Begin with the oldest message held."""

@final
class Message(Generic[_T_co]):
    """One message as received. Made by the core only."""

    @property
    def data(self) -> _T_co:
        """The value as the tag's codec decodes it."""

    @property
    def seq(self) -> int:
        """The publisher's sequence number, from 0."""

    @property
    def tag(self) -> str: ...
    @property
    def publisher(self) -> PublisherInfo: ...
    @property
    def event_ns(self) -> int: ...
    @property
    def sent_ns(self) -> int: ...
    @property
    def received_ns(self) -> int: ...
    @property
    def arrived_ns(self) -> int:
        """When this node's mirror had it, UTC; 0 in its publisher's own ring."""

    @property
    def kernel_ns(self) -> int:
        """When this node's kernel took the datagram that completed it, UTC; 0 where that is not known."""

    @property
    def lost(self) -> int: ...
    @property
    def discardable(self) -> bool: ...
    @property
    def valid(self) -> bool:
        """False once the ring's writer took the place of a message received with copy=False."""

def make_pulled_message(
    data: Any,
    *,
    tag: Any,
    publisher: Any,
    seq: int,
    event_ns: int,
    sent_ns: int,
    received_ns: int,
    lost: int = 0,
    discardable: bool = False,
) -> Message[Any]:
    """A message that was read from a ring on another node; `data` is decoded already."""

@final
class Columns:
    """Messages as columns: arrays of equal length, undecoded. Made by the core only."""

    def __len__(self) -> int: ...
    @property
    def rings(self) -> list[Any]:
        """The publishers (PublisherInfo) that the numbers in `ring` stand for."""

    @property
    def ring(self) -> NDArray[np.int32]: ...
    @property
    def seq(self) -> NDArray[np.int64]: ...
    @property
    def event_ns(self) -> NDArray[np.int64]: ...
    @property
    def sent_ns(self) -> NDArray[np.int64]: ...
    @property
    def received_ns(self) -> NDArray[np.int64]: ...
    @property
    def lost(self) -> NDArray[np.int64]: ...
    @property
    def discardable(self) -> NDArray[np.uint8]: ...
    @property
    def offsets(self) -> NDArray[np.int32]:
        """One more than there are rows: row i has payload[offsets[i]:offsets[i + 1]]."""

    @property
    def payload(self) -> NDArray[np.uint8]: ...
    @property
    def following(self) -> int:
        """Of a range: the number to go on from."""

    @property
    def lost_at_end(self) -> int:
        """Of a range: how many at its end are gone, which no row's `lost` tells."""

@final
class Reservation:
    """Writable room inside the ring; memoryview(reservation) is the room, commit() sends it."""

    def commit(self, length: int | None = None, event_ns: int | None = None, discardable: bool = False) -> int: ...
    def cancel(self) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __enter__(self) -> memoryview: ...
    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...
    def __len__(self) -> int: ...

class RingWriter:
    """One publisher's ring: the only writable mapping of a sealed memfd."""

    def __init__(
        self,
        *,
        depth: int,
        capacity_bytes: int,
        max_wait_s: float = 0.1,
        skip_slow: bool = False,
        prefault: bool = False,
        encode: Callable[[Any], Any] | None = None,
        incarnation: int = 0,
    ) -> None:
        """`encode` maps a value to a buffer, or to a tuple of buffers sent as one message. Incarnation 0: random."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def memory_bytes(self) -> int:
        """What the ring can come to occupy: header, index and bytes."""

    @property
    def closed(self) -> bool: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def unread(self) -> int:
        """The number of the first message that a reliable reader has not read; `next_seq` when there is none."""

    @property
    def unread_before(self) -> int:
        """How many messages of the ring before the last `take_over` a reliable reader has not read."""

    def take_over(self, other: RingWriter) -> None:
        """Go on in the ring of `other`, which is left without one. An open reservation is written to the old ring."""

    def send(
        self, data: Any, event_ns: int | None = None, discardable: bool = False, priority: str | None = None
    ) -> int: ...
    def send_nowait(
        self, data: Any, event_ns: int | None = None, discardable: bool = False, priority: str | None = None
    ) -> int:
        """As `send`, or WouldBlock where `send` would wait for a reliable reader."""

    def send_many(self, items: Sequence[Any], event_ns: int | None = None) -> int:
        """Send each item as a message of its own, with one wake-up; returns the number of the last one.

        All are of one moment: they share one send time, and one event time. If an item cannot be sent, those before it
        were.
        """

    def send_packet(
        self, table: VariableTable, full: bool, heads_up: bool, period_ns: int, frame_ms: int, limit: int
    ) -> int:
        """Make a packet of what changed in a table, or of everything, and send it, each chunk of at most `limit` bytes
        as a message; returns how many. With `heads_up`: one that says that a packet follows. Raises as `send_many`."""

    def reserve(self, length: int) -> Reservation: ...
    def attach_fanout(self, socket_fd: int) -> None:
        """Take over the publisher's end of the socket on which the daemon announces mailboxes."""

    def set_stage(self, stage: Callable[[], object] | None) -> None:
        """Call this after every message, on the thread that sent it; None takes it back."""

    def counters(self) -> dict[str, int]:
        """sent, bytes, waits (for reliable readers), overruns (readers passed over), wakes."""

    def close(self) -> None: ...

class RingReader:
    """Cursors over any number of rings, waited on together. Base of a subscriber."""

    def __init__(
        self,
        *,
        reliable: bool = False,
        busy_poll: bool = False,
        counters: CounterSlot | None = None,
        what: str = "subscriber",
    ) -> None: ...
    def attach(
        self,
        ring_fd: int,
        bell_fd: int,
        *,
        depth: int,
        capacity_bytes: int,
        incarnation: int,
        start: int = ...,
        tag: Any = None,
        publisher: Any = None,
        decode: Callable[[Any], Any] | None = None,
        every: int = 1,
        after: int = 0,
        step: int = 1,
        paced: bool = False,
        first: int = 0,
        unordered: bool = False,
        inflow: Delivery | None = None,
    ) -> bool:
        """Map a ring and put a cursor on it; False when that incarnation is attached already. `unordered`: its numbers
        are not ascending, and `every` is 1.

        `after` names a ring that this one continues: it is read up to where it is now, or was when it ended, and then
        this one from the number that follows, rounded up to a multiple of `step`; nothing is read twice, and what this
        one has not is lost, even if it begins later or is still empty. `first` is the number with which the ring began.

        The descriptors stay the caller's. With `every` n only numbers that are multiples of n are read, and only
        they can be lost; with `paced`, n may change later. `step` is the factor by which the ring itself was scaled.
        `start` is START_NEW, START_LATEST, START_EARLIEST or a sequence number.
        Raises CorruptRing when seals, size or header do not fit the geometry, QosMismatch when reliable was asked
        for and no slot is free.
        """

    def rescale(self, incarnation: int, every: int) -> bool:
        """Read another scaling in time of a ring that was attached with `paced`; False when it is not attached."""

    def detach(self, incarnation: int, drain: bool = True, end: int | None = None) -> bool:
        """Let go of a ring; with `drain`, after what it still holds has been read.

        With `end`, what its publisher sent ends before that number: what was due before it and did not come is lost.
        For a ring that was read to the end before, that is counted at once. False when there was nothing to do.
        """

    @property
    def lost(self) -> int:
        """All that was lost so far, with messages and at the ends of streams."""

    @property
    def incarnations(self) -> list[int]: ...
    @property
    def closed(self) -> bool: ...
    def recv(self, timeout: float | None = None, copy: bool = True) -> Message[Any]:
        """The next message. Raises TimeoutError, ClosedError, BusyError, CorruptRing, or `fail`'s error."""

    def recv_nowait(self, copy: bool = True) -> Message[Any]:
        """The next message, or WouldBlock."""

    def recv_if_any(self, copy: bool = True) -> Message[Any] | None:
        """As `recv_nowait`; None where that raises WouldBlock."""

    def plan_spin(self) -> bool:
        """Before an event loop sleeps: whether `recv_queued` with `spins` is worth a try."""

    def recv_queued(self, copy: bool = True, spins: bool = False) -> Message[Any] | None:
        """What has come already, or None; the descriptor stays as it is. With `spins`, wait for it a tenth of a
        millisecond at most, as planned."""

    def with_queued(self, message: Message[Any], n: int) -> list[Message[Any]]:
        """What was received, and what has come behind it: at most `n`, at least 1."""

    def quiet(self) -> bool:
        """Whether there is nothing to receive and nothing to raise; the descriptor is then not readable."""

    def recv_many(self, n: int, timeout: float | None = None) -> list[Message[Any]]:
        """Wait for at least one message, return at most `n`."""

    def recv_columns(self, n: int, timeout: float | None = None, most_bytes: int = 1 << 26) -> Columns:
        """As `recv_many`, into columns: at most `n` messages of together `most_bytes`, undecoded."""

    def recv_chunks(
        self, find: Callable[[Any], VariableTable], n: int, timeout: float | None = None, looks_out: bool = False
    ) -> list[tuple[Any, ToldVariables, int, int, int, int]]:
        """As `recv_many`, of a tag of variables: apply at most `n` chunks to the tables of those who sent them, which
        `find(publisher)` gives, asked once for each ring. Of each table (table, told, lost, sent_ns, kernel_ns,
        arrived_ns), with the times of the chunk that came last. With `looks_out` the rest of a packet is looked for
        for a moment, so that it comes together, and after a heads-up the next call looks for what it announces before
        it sleeps."""

    def use_mailbox(self) -> int:
        """Wait on one mailbox instead of on each ring; returns its descriptor, to be passed to publishers."""

    def use_bridge(self, bridge: Bridge) -> int:
        """Signal arrivals on an eventfd; returns it. From then on the bridge's mailbox is the one to be passed."""

    def use_signal(self) -> int:
        """Have the kernel signal arrivals on an eventfd; returns it, or -1 where it cannot, or a mailbox is in use."""

    def newest(self) -> Message[Any] | None:
        """The newest message held by any attached ring, without moving a cursor."""

    def heads(self) -> list[tuple[Any, int | None]]:
        """Of each attached ring its publisher and the number of its newest message, None where it has none."""

    def wait_newer(self, sent_ns: int, timeout: float | None = None) -> Message[Any]:
        """Wait until the newest message was sent after `sent_ns`; cursors do not move. For blackboards."""

    def poke(self) -> None:
        """Wake whoever waits, so that it looks again."""

    def fail(self, error: BaseException | None) -> None:
        """Make every later receive raise `error` once what is held has been read; None takes it back."""

    def counters(self) -> dict[str, int]:
        """received, lost, bytes, corrupt, and the number of rings."""

    def latency_histogram(self) -> list[int]: ...
    def close(self) -> None: ...

class RingHistory:
    """Random access to the rings of a tag: no message, no system call."""

    def __init__(self) -> None: ...
    def attach(
        self,
        ring_fd: int,
        *,
        depth: int,
        capacity_bytes: int,
        incarnation: int,
        tag: Any = None,
        publisher: Any = None,
        decode: Callable[[Any], Any] | None = None,
        limit: int = 0,
    ) -> bool:
        """`limit` shows at most that many of the newest messages; 0 shows all that are held."""

    def detach(self, incarnation: int) -> bool: ...
    @property
    def incarnations(self) -> list[int]: ...
    @property
    def closed(self) -> bool: ...
    def latest(self, back: int = 0, copy: bool = True) -> Message[Any]:
        """The newest message, or the one `back` before it, by send time over all rings."""

    def at(self, seq: int, incarnation: int = 0, copy: bool = True) -> Message[Any]:
        """By sequence number. With several rings attached, `incarnation` says which (0: the only one)."""

    def range(self, first: int, last: int, incarnation: int = 0) -> list[Message[Any]]:
        """Those still held of first..last, both included; `lost` of each counts the missing ones before it."""

    def range_columns(
        self,
        first: int,
        last: int,
        incarnation: int = 0,
        *,
        every: int = 1,
        most_rows: int = 65536,
        most_bytes: int = 1 << 26,
    ) -> Columns:
        """As `range`, into columns and undecoded: those whose number is a multiple of `every`, at most so many rows and
        bytes. Ask again from `following` until that is above `last` or what was sent."""

    def bounds(self, incarnation: int = 0) -> tuple[int, int]:
        """(oldest held, newest); (n, n - 1) when empty."""

    def close(self) -> None: ...

MOST_VARIABLES: int
HOW_TIME: int
HOW_REPEATED: int
HOW_DECLARED: int
HOW_REMOVED: int

def variable_matches(pattern: str, name: str) -> bool:
    """`*` stands for any letters of one segment, `**` for any of several."""

@final
class ToldVariables:
    """What became of variables that came together."""

    @property
    def heads_up(self) -> bool:
        """Whether the chunk that came last says that a packet follows at once."""

    def __len__(self) -> int: ...
    def indices(self) -> NDArray[np.uint32]: ...
    def how(self) -> NDArray[np.uint8]: ...

class VariableTable:
    """Named, typed values in columns: what an owner changes and sends, and what others know of it. Any thread."""

    def __init__(self) -> None: ...
    def add(self, name: str, value: Any, event_ns: int | None = None) -> int:
        """Raises ValueError (a bad name, or there already), TypeError."""

    def set(self, name: str, value: Any, event_ns: int | None = None) -> bool:
        """False when there is no such variable. Raises TypeError, ValueError, OverflowError."""

    def set_at(self, indices: NDArray[np.uint32], values: NDArray[np.float64], event_ns: int | None = None) -> None:
        """Floats alone; others are passed over."""

    def strangers(self, indices: NDArray[np.uint32]) -> int:
        """How many of these `set_at` would pass over."""

    def remove(self, name: str) -> bool: ...
    def collect(self, *, full: bool, period_ns: int, frame_ms: int, limit: int) -> list[bytes]:
        """The chunks of this cycle's packet."""

    def apply(
        self, chunks: Sequence[Any], event_times: Sequence[int] | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8], int]:
        """Take chunks in: the indices concerned, what became of each (HOW_...), and how many were no chunks. The event
        times are those of the chunks' messages, by which times are translated; without them they stay the owner's."""

    def get(self, name: str) -> Any: ...
    def numbers(self, indices: NDArray[np.uint32]) -> NDArray[np.float64]: ...
    def times(self, indices: NDArray[np.uint32]) -> NDArray[np.int64]: ...
    def values_at(self, indices: NDArray[np.uint32]) -> list[Any]: ...
    def index(self, name: str) -> int | None: ...
    def name(self, index: int) -> str | None: ...
    def type(self, name: str) -> str | None: ...
    def names(self) -> list[str]: ...
    def select(self, patterns: Sequence[str]) -> NDArray[np.uint32]: ...
    def counters(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...
    @property
    def pending(self) -> bool: ...
    @property
    def newest_ns(self) -> int | None:
        """The event time of the packet collected last; None when it has no values."""

    @property
    def complete(self) -> bool:
        """Whether as many variables are known as the owner last said that there are."""

    @property
    def period_ns(self) -> int: ...
    @property
    def frame_ms(self) -> int: ...

class VariableView:
    """A selection of variables under a policy: chunks in, chunks out. One thread."""

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        mode: str,
        period_s: float = 0.0,
        dead_band: float = 0.0,
        least_s: float = 0.0,
        longest_s: float = 0.0,
        by_value: bool = False,
        frame_s: float = 1.0,
        limit: int = 1200,
    ) -> None: ...
    def feed(self, chunks: Sequence[Any], event_times: Sequence[int] | None = None) -> int:
        """How many were no chunks. Event times as with `VariableTable.apply`."""

    def poll(self, now_ns: int, full: bool = False) -> list[bytes]: ...
    @property
    def newest_ns(self) -> int | None:
        """The event time of what was polled last."""

    @property
    def wake_at_ns(self) -> int: ...
    @property
    def selected(self) -> int: ...

class StageWriter:
    """The ring that a proxy's stage writes: its messages keep the numbers and times of their publisher."""

    def __init__(self, *, depth: int, capacity_bytes: int, max_wait_s: float = 0.1, first_seq: int = 0) -> None: ...
    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def next_seq(self) -> int:
        """The publisher's number of the message that comes next."""

    def put(
        self, data: Any, *, seq: int, event_ns: int, sent_ns: int, discardable: bool = False, lost: int = 0
    ) -> None:
        """Append and announce. `lost` were due before it and did not come. Reliable readers are waited for up to
        `max_wait_s` and then passed over."""

    def attach_fanout(self, socket_fd: int) -> None: ...
    def announce(self) -> None:
        """Take notice of what came on the fan-out socket, without a message."""

    def close(self) -> None: ...

class FileStore:
    """Files that a process keeps without a descriptor for each, where the kernel can: Linux 6.8 and newer."""

    def __init__(self) -> None: ...
    def keep(self, fd: int) -> int | None:
        """Where it is kept, None where it cannot be. The descriptor stays the caller's."""

    def open(self, place: int) -> int:
        """A descriptor of it, the caller's to close. Raises ResourceLimit."""

    def drop(self, place: int) -> None: ...
    def __len__(self) -> int: ...

class RingMonitor:
    """The daemon's hold on a ring: counters and liveness, never data."""

    def __init__(self, ring_fd: int, bell_fd: int, *, depth: int, capacity_bytes: int, incarnation: int) -> None: ...
    def counters(self) -> dict[str, int]: ...
    @property
    def age_ns(self) -> int:
        """How long ago the ring was made; its writer's word."""

    @property
    def next_seq(self) -> int: ...
    def last_sent_ns(self) -> int: ...
    def bump_fanout(self) -> None:
        """Tell the publisher that its fan-out socket has news."""

    def take_fanout_fd(self) -> int:
        """The page that `bump_fanout` writes, for the publisher; once, and the descriptor is the caller's to close."""

    def free_slots(self, pid: int) -> int:
        """Free the reliable slots of a dead process and wake the publisher; how many there were."""

    def place(self) -> int | None:
        """Where the slowest of this process's reliable cursors is that read the ring for other nodes."""

    def free_orphan(self) -> bool:
        """Of the places that a daemon before this one kept for readers on other nodes, free the foremost; False when
        there is none."""

    def free_lapsed_orphans(self) -> int:
        """Free those that the publisher has passed over; how many there were."""

    def close(self) -> None: ...

class CounterPage:
    """One session's subscriber counters in a sealed memfd."""

    def __init__(self, slots: int = 1024) -> None: ...
    @property
    def fd(self) -> int: ...
    def take(self) -> CounterSlot: ...

class CounterSlot:
    @property
    def index(self) -> int: ...
    def release(self) -> None: ...

class CounterView:
    """Somebody else's counter page, read-only."""

    def __init__(self, fd: int) -> None: ...
    def counters(self, index: int) -> dict[str, int]: ...
    def latency_histogram(self, index: int) -> list[int]: ...

class Bridge:
    """A native thread that turns mailbox rings into eventfd writes, one per session."""

    def __init__(self) -> None: ...
    @property
    def mailbox_fd(self) -> int: ...
    def close(self) -> None: ...

class TimeBase:
    """Another node's clock as this node reads it: the line on which it is believed to be."""

    def __init__(self, fd: int = -1) -> None:
        """With a descriptor, one that another process keeps. Raises CorruptRing."""

    @property
    def fd(self) -> int:
        """For other processes; -1 where one of those keeps it."""

    def set(self, reference_ns: int, offset_ns: int, rate: float) -> None:
        """The other clock is `offset_ns` ahead when it shows `reference_ns`; that grows by `rate` of its time."""

    @property
    def same(self) -> bool:
        """It is this node's own clock, as far as is known."""

    def to_local(self, remote_ns: int) -> int: ...
    def to_remote(self, local_ns: int) -> int: ...

class Mirror:
    """A remote publisher's stream on this node: a ring that a delivery thread writes."""

    def follow(self, sender: TimeBase) -> None:
        """Translate the times of messages from the sender's clock. Once, before the first comes."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def incarnation(self) -> int:
        """The mirror ring's own; its publisher's is in the channel."""

    @property
    def memory_bytes(self) -> int:
        """Of the ring and of what waits to be put together, at most."""

    @property
    def next_seq(self) -> int:
        """The publisher's number of the message that comes next."""

    @property
    def closed(self) -> bool:
        """Its thread has let go of it: nothing more will be written, and `next_seq` stays."""

    @property
    def page_fd(self) -> int:
        """Of the page that shows its counters to another process (`ShownMirror`); -1 without one."""

    def counters(self) -> dict[str, int]: ...

SEAL_ALGORITHM: int
"""The fastest of this machine: 1 is AES-128-GCM, 2 is ChaCha20-Poly1305."""
SEAL_BYTES: int
"""How much longer a datagram gets by being sealed."""
SEAL_RECEIVER: int
"""Numbers of receivers, among those who seal packets of a channel, begin here."""
SEAL_EPOCH_PACKETS: int
"""After so many packets of a sender the channel's next epoch is to begin."""

class ChannelSeal:
    """What a daemon knows of a channel's seal: its secret, and a counter for each sender of this node."""

    def __init__(self, key: int, secret: bytes, epoch: int = 0, algorithm: int = ...) -> None:
        """Raises ValueError (the secret has not 32 bytes), QosMismatch (there is no libcrypto)."""

    @property
    def algorithm(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    def newest(self) -> tuple[int, bytes]:
        """The epoch and its secret, for whoever joins now."""

    def link(self, sender: int) -> tuple[bytes, int]:
        """The key of this epoch as a publisher is told it, and the descriptor of the counter's page."""

    @property
    def used(self) -> int:
        """The most that one sender sealed since the epoch began."""

    def advance(self) -> None:
        """Begin the next epoch."""

class Sealer:
    """Seals packets as one sender of a channel; for tests."""

    def __init__(self, seal: ChannelSeal, sender: int) -> None: ...
    def seal(self, packet: bytes) -> bytes | None:
        """None when the key is used up."""

class Opener:
    """Opens packets of a channel, at a receiver or at the publisher's node; for tests."""

    def __init__(self, seal: ChannelSeal, publisher: bool = False, own: int = 4294967295) -> None: ...
    def open(self, packet: bytes) -> tuple[str, bytes | None]:
        """ "ok", "forged", "replayed", "old_key" or "reflected"."""

    @property
    def senders(self) -> int:
        """Of how many it has opened something."""

class ShownMirror:
    """A mirror that another process writes, as its page shows it. What it says may be untrue."""

    def __init__(self, page_fd: int) -> None:
        """Raises CorruptRing."""

    @property
    def next_seq(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def counters(self) -> dict[str, int]: ...

class Delivery:
    """A native thread that takes datagrams on one socket and writes mirrors."""

    def __init__(self, socket_fd: int, attended: bool = False) -> None:
        """`attended`: a reader whose only ring it fills receives itself while it waits (`RingReader.attach`)."""

    @property
    def taken(self) -> int:
        """How often the thread took the turn to receive from the reader."""

    @property
    def entries(self) -> int:
        """How often the reader had it."""

    def open(
        self,
        *,
        key: int,
        depth: int,
        capacity_bytes: int,
        every: int = 1,
        first_seq: int = 0,
        reliable: bool = False,
        patience_ns: int = 2000000,
        seal: ChannelSeal | None = None,
    ) -> Mirror: ...
    def open_recovered(
        self,
        *,
        key: int,
        depth: int,
        capacity_bytes: int,
        every: int,
        first_seq: int,
        reliable: bool,
        stages: list[str],
        tuning: dict[str, int],
        me: int,
        messages: int,
        most_pieces: int,
        cells: int,
        cell_bytes: int,
        publisher: str,
        group: str,
        peers: list[str],
        gate_seq: int,
        patient: bool,
        loss: tuple[float, float, float, float, float, int],
        seal: ChannelSeal | None = None,
        sender: int = 4294967295,
        shown: bool = False,
        before: tuple[int, int, int, int] | None = None,
    ) -> Mirror:
        """Behind a recovery stack. `loss` is (rate, enter, leave, duplicate, overtake, seed) of losses on purpose. With
        `shown` its counters are in a page that other processes may have. `before` is the ring that it takes the place
        of (descriptor, depth, capacity, incarnation): what that holds before `first_seq` is copied first."""

    def retune(
        self, key: int, tuning: dict[str, int], patient: bool, loss: tuple[float, float, float, float, float, int]
    ) -> None: ...
    def regroup(self, key: int, peers: list[str]) -> None: ...
    def add_socket(self, socket_fd: int) -> None: ...
    def close_channel(self, key: int) -> None: ...
    def attach_fanout(self, key: int, socket_fd: int) -> None: ...
    @property
    def thread_id(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def close(self) -> None: ...

class Streams:
    """A native thread that reads streams of frames and writes mirrors."""

    def __init__(self) -> None: ...
    def open(
        self,
        *,
        key: int,
        depth: int,
        capacity_bytes: int,
        every: int = 1,
        first_seq: int = 0,
        reliable: bool = False,
        patience_ns: int = 2000000,
        seal: ChannelSeal | None = None,
    ) -> Mirror: ...
    def close_channel(self, key: int) -> None: ...
    def add_stream(self, key: int, socket_fd: int) -> None: ...
    def attach_fanout(self, key: int, socket_fd: int) -> None: ...
    def ended(self) -> list[int]: ...
    @property
    def thread_id(self) -> int: ...
    @property
    def failures(self) -> int:
        """Requests that failed on the thread, and the thread itself."""

    def close(self) -> None: ...

class Group:
    """The sending end of one stream to a group of nodes; made by `Retransmitter.open`."""

    def counters(self) -> dict[str, int]: ...

class Retransmitter:
    """A native thread that answers receivers: naks, acknowledgements and credits in, heartbeats and repairs out."""

    def __init__(self, socket_fd: int) -> None: ...
    def open(
        self,
        ring_fd: int,
        bell_fd: int,
        *,
        depth: int,
        capacity_bytes: int,
        incarnation: int,
        key: int,
        every: int,
        first_seq: int,
        stages: list[str],
        tuning: dict[str, int],
        chunk: int,
        reliable: bool,
        pumped: bool,
        most_bytes_per_s: int,
        multicast: str,
        loss: tuple[float, float, float, float, float, int],
        seal: ChannelSeal | None = None,
        sender: int = 0,
    ) -> Group: ...
    def close_group(self, key: int) -> None: ...
    def set_members(self, key: int, members: list[tuple[str, int, bool]]) -> None:
        """(address, first sequence number, not reached by multicast) by number; address '' where nobody is."""

    def pump_from(self, key: int, seq: int) -> None: ...
    def retune(self, key: int, tuning: dict[str, int], loss: tuple[float, float, float, float, float, int]) -> None: ...
    def probe(self, key: int) -> None: ...
    def set_multicast(self, key: int, address: str) -> None: ...
    def counters(self) -> dict[str, int]: ...
    @property
    def thread_id(self) -> int: ...
    def close(self) -> None: ...

class Pump:
    """A native thread with a cursor on a ring and a socket to another node."""

    def __init__(
        self,
        ring_fd: int,
        bell_fd: int,
        socket_fd: int,
        *,
        depth: int,
        capacity_bytes: int,
        incarnation: int,
        key: int,
        every: int = 1,
        first_seq: int = 0,
        reliable: bool = False,
        stream: bool = True,
        chunk: int = 0,
        most_bytes_per_s: int = 0,
        seal: ChannelSeal | None = None,
        sender: int = 0,
        heads: int = 0,
    ) -> None: ...
    def stop_before(self, seq: int) -> None:
        """Somebody else sends `seq` and what follows; the state is "done" once everything before it is sent."""

    @property
    def state(self) -> str:
        """ "running", "done" or "broken"."""

    @property
    def next_seq(self) -> int: ...
    @property
    def thread_id(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def close(self) -> None: ...

class Receiving:
    """The receiving end of a recovery stack, sans-IO. Calls return what is to be done, in order:

    ("deliver", datagram), ("lost", seq, messages), ("send", to, peer, datagram), `to` being "group", "publisher" or
    "peer".
    """

    def __init__(
        self,
        stages: Sequence[str],
        *,
        key: int = 0,
        me: int = 0,
        receivers: int = 1,
        multicast: bool = False,
        seed: int = 1,
        first_seq: int = 0,
        every: int = 1,
        messages: int = 1024,
        most_pieces: int = 64,
        cells: int = 1024,
        cell_bytes: int = 1500,
        tuning: dict[str, int] = ...,
    ) -> None:
        """Raises ValueError for a stage that there is not, and a tuning that cannot be."""

    def on_datagram(self, datagram: bytes, now_ns: int) -> list[tuple[Any, ...]]: ...
    def tick(self, now_ns: int) -> list[tuple[Any, ...]]: ...
    @property
    def wake_at_ns(self) -> int: ...
    def retune(self, tuning: dict[str, int]) -> None: ...
    def lose(
        self,
        rate: float,
        *,
        enter: float = 0.0,
        leave: float = 1.0,
        duplicate: float = 0.0,
        overtake: float = 0.0,
        seed: int = 1,
    ) -> None:
        """Lose what arrives from now on: with probability `rate`, and all of it in bursts (Gilbert-Elliott). Shares of
        the rest come twice, or after the next one."""

    @property
    def base_seq(self) -> int:
        """The first message that is neither complete nor given up."""

    @property
    def end_seq(self) -> int:
        """One step behind the newest message known of."""

    def counters(self) -> dict[str, int]: ...

class Sending:
    """The sending end: answers what receivers ask, and says how far the stream is."""

    def __init__(
        self,
        stages: Sequence[str],
        read: Callable[[int, int], bytes | None],
        first_available: Callable[[], int],
        *,
        key: int = 0,
        receivers: int = 1,
        multicast: bool = False,
        first_seq: int = 0,
        every: int = 1,
        cell_bytes: int = 1500,
        tuning: dict[str, int] = ...,
    ) -> None:
        """`read(seq, piece)` is the datagram, or None when the ring no longer has it."""

    def room(self) -> bool: ...
    def on_sent(self, datagram: bytes, now_ns: int) -> list[tuple[Any, ...]]: ...
    def on_message(self, seq: int, now_ns: int) -> None:
        """Enough in place of on_sent unless a stage needs packets."""

    def on_datagram(self, datagram: bytes, now_ns: int) -> list[tuple[Any, ...]]: ...
    def tick(self, now_ns: int) -> list[tuple[Any, ...]]: ...
    @property
    def wake_at_ns(self) -> int: ...
    def retune(self, tuning: dict[str, int]) -> None: ...
    def counters(self) -> dict[str, int]: ...

def make_datagram(
    *,
    key: int,
    seq: int,
    length: int,
    chunk: int,
    piece: int,
    data: bytes,
    event_ns: int = 0,
    sent_ns: int = 0,
    flags: int = 0,
) -> bytes:
    """A data packet as links send it."""

def erasure_coefficient(row: int, place: int) -> int: ...
def recovery_stages() -> list[tuple[str, bool, bool]]:
    """(name, nothing is missing in the end, in order) of every stage there is."""

def recovery_tuning() -> dict[str, int]:
    """Every field that can be tuned, with its default."""

def check_recovery_tuning(tuning: dict[str, int]) -> None:
    """Raises ValueError, which names the field."""

def latency_bucket_ns(bucket: int) -> int:
    """Upper bound of a histogram bucket in nanoseconds."""

def ring_memory_bytes(depth: int, capacity_bytes: int) -> int: ...
def utc_ns() -> int:
    """Time of day as messages are stamped with it. For tests, RINGCAST_CLOCK_AHEAD_S, RINGCAST_CLOCK_DRIFT (seconds per
    second) and RINGCAST_CLOCK_STEP (SECONDS@UNIX_TIME) in the environment move it."""

def utc_of(real_ns: int) -> int:
    """What the kernel stamped, as `utc_ns` would have."""

CLOCK_APART: bool
"""Whether the environment moved this process's clock."""

def forked() -> None:
    """Called in the child after a fork: every native object made before it is dead there."""

def futex_waitv_available() -> bool: ...
def parse_datagram(datagram: bytes) -> tuple[str, dict[str, int] | None]:
    """("ok", header), or why the bytes are no datagram of ours: truncated, foreign, newer, malformed. For tests."""

class Reassembly:
    """From pieces to messages, in order, as a mirror does it. For tests."""

    def __init__(
        self, first: int, step: int, most_bytes: int, patience_ns: int, reach: int = 18446744073709551615
    ) -> None: ...
    def accept(self, datagram: bytes, now_ns: int) -> list[tuple[int, int, bytes]]:
        """(number, lost, payload) of each message that may leave now. Raises ValueError when it is no datagram."""

    def tick(self, now_ns: int) -> list[tuple[int, int, bytes]]: ...
    @property
    def wake_at_ns(self) -> int: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

REASSEMBLY_WINDOW: int

def area_average(
    source: Any,
    result: Any,
    *,
    kind: str,
    rows: int,
    columns: int,
    to_rows: int,
    to_columns: int,
    colours: int,
) -> None:
    """Fill `result` with the means of `source`, C-order buffers of `kind` B, H, h, f or d. Lets the GIL go."""

@final
class Trees:
    """A model's trees. `features` are products of numbers: (whether it is divided by, which number). A node is
    (feature, threshold, left, right); where left is 0 it is a leaf, and right says which. Children count from their
    tree's root."""

    def __init__(
        self,
        *,
        numbers: int,
        features: Sequence[Sequence[tuple[bool, int]]],
        logarithms: bool,
        roots: Sequence[int],
        nodes: Sequence[tuple[int, float, int, int]],
        leaves: Sequence[float],
        labels: int,
        taken: Sequence[int] = (),
    ) -> None:
        """`numbers` are handed over as they are, or with `taken` all that was measured of an environment: which of that
        and of what follows from it they are, by `ringcast.adapt.features`. Raises ValueError."""

    def scores(self, numbers: Sequence[float]) -> list[float]:
        """The sum of the leaves, by label. Raises ValueError."""

    def powers(self, numbers: Sequence[float]) -> list[float]:
        """e to the power of each of the sums, at most e^700. Raises ValueError."""

    def best(self, numbers: Sequence[float], lowest: bool) -> int:
        """The label with the lowest sum, or the highest; of equals the first. Raises ValueError."""

class Layers:
    """A model's networks. A layer is (weights, constants): for each input, what it adds to each output; between two
    layers a value x becomes x / (1 + |x|). `features` are as those of `Trees`."""

    def __init__(
        self,
        *,
        numbers: int,
        features: Sequence[Sequence[tuple[bool, int]]],
        logarithms: bool,
        networks: Sequence[Sequence[tuple[Sequence[float], Sequence[float]]]],
        labels: int,
        taken: Sequence[int] = (),
    ) -> None:
        """`numbers` are handed over as they are, or with `taken` all that was measured of an environment: which of that
        and of what follows from it they are, by `ringcast.adapt.features`. Raises ValueError."""

    def scores(self, numbers: Sequence[float]) -> list[float]:
        """The sum of the networks, by label. Raises ValueError."""

    def powers(self, numbers: Sequence[float]) -> list[float]:
        """e to the power of each of the sums, at most e^700. Raises ValueError."""

    def best(self, numbers: Sequence[float], lowest: bool) -> int:
        """The label with the lowest sum, or the highest; of equals the first. Raises ValueError."""

def set_schedule(thread: int, values: tuple[int, int, int, int, int]) -> None:
    """Give a thread (0: the caller's) a policy of Linux: its number, priority, runtime, deadline, period in ns. Raises
    OSError."""

def schedule_of(thread: int) -> tuple[int, int, int, int, int]:
    """What the kernel has. Raises OSError."""

def try_schedule(values: tuple[int, int, int, int, int]) -> None:
    """Whether the kernel would grant it, by a thread that asks for it and ends. Raises OSError."""

class LockedMemory:
    """A file of shared memory, all of it in memory and kept there until `close`. Raises OSError."""

    def __init__(self, fd: int) -> None: ...
    @property
    def bytes(self) -> int: ...
    def close(self) -> None: ...
