"""What waits for one page, how it is kept short, and what the page will be told that it missed. Pure.

Invariants: what waits is bounded, by messages and by bytes, whatever the page does; of every publisher, the messages a
page gets and the `lost` that they carry add up to what it was due. Reliable streams lose nothing: `has_room` says when
their reader may go on, and until then publishers wait for it as for any reliable reader.

A page that is behind gets fewer messages: first those go that their publishers marked discardable, then every second,
every fourth... is left out for as long as the page stays behind, regularly and not in bursts. The newest message of
each publisher is kept even so, and sent when nothing newer came for a moment: how it ended is always told.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator

from ringcast.gateway.window import Window

QUEUED = 16
"""Messages of a stream that wait. Longer queues add delay and nothing else; shorter ones lose to a moment's stall."""
BURST, BURST_S = 256, 0.1
"""A fast stream may have more waiting while they are younger than this."""
PRESSED = 4
"""From so many on, discardable messages are not queued."""
MOST_FACTOR = 1024
QUIET_S = 0.25
"""After so long without a newer one, a message that was left out is sent after all."""
NEWEST = 16
"""Publishers of a stream whose newest message is kept."""
RAISE_S, LOWER_S, MOST_LOWER_S = 0.25, 1.0, 16.0


class Entry:
    """A message that waits or is on its way."""

    __slots__ = ("at_s", "discardable", "event_ns", "lost", "order", "payload", "received_ns", "sent_ns", "seq",
                 "source")  # fmt: skip

    def __init__(
        self, source: int, seq: int, payload: bytes, *, lost: int = 0, discardable: bool = False, event_ns: int = 0,
        sent_ns: int = 0, received_ns: int = 0,
    ) -> None:  # fmt: skip
        self.source = source
        self.seq = seq
        self.payload = payload
        self.lost = lost
        self.discardable = discardable
        self.event_ns = event_ns
        self.sent_ns = sent_ns
        self.received_ns = received_ns
        self.at_s = 0.0
        self.order = 0


def _nobody() -> None:
    """Nobody waits for room."""


class Stream:
    """One subscription of the page."""

    def __init__(self, number: int, priority: int = 0, reliable: bool = False) -> None:
        self.number = number
        self.priority = priority
        self.reliable = reliable
        self.window = Window()
        self.every = 1
        self.left_out = 0
        """All that this page was due and did not get for being behind or away."""
        self.discarded = 0
        """Of those, how many were discardable."""
        self.queue: deque[Entry] = deque()
        self.bytes = 0
        self.on_room: Callable[[], object] = _nobody
        self._on_way: deque[tuple[float, Entry]] = deque()
        self._on_way_bytes = 0
        self._missed: Counter[int] = Counter()
        self._newest: OrderedDict[int, Entry] = OrderedDict()  # by source, left out and nothing newer came
        self._raised_s = self._lowered_s = self._behind_s = -1e9
        self._lower_after_s = LOWER_S

    @property
    def kept(self) -> int:
        """Messages that are in memory for the page."""
        return len(self.queue) + len(self._newest)

    def waits(self, most_bytes: int) -> bool:
        """Whether something may be sent now."""
        return bool(self.queue) and self.window.is_open and not (self.reliable and self._on_way_bytes > most_bytes)

    def taken(self, number_untrusted: int, now_s: float) -> None:
        """The application took messages. Raises BadMessage."""
        more = self.window.newly_taken(number_untrusted)
        if not more:
            return
        sent_s = now_s
        for _ in range(more):
            sent_s, entry = self._on_way.popleft()
            self._on_way_bytes -= len(entry.payload)
        self.window.took(more, now_s - sent_s, now_s)

    def resume(self, received_untrusted: int) -> None:
        """The page is back: what had not arrived is lost, or sent again on a reliable stream. Raises BadMessage."""
        for _ in range(self.window.resume(received_untrusted)):
            _, entry = self._on_way.pop()
            self._on_way_bytes -= len(entry.payload)
            if self.reliable:
                self.queue.appendleft(entry)
                self.bytes += len(entry.payload)
            else:
                self._leave_out(entry)
        # What overflowed while nobody was there says nothing of how fast the page is.
        self.every = 1
        self._behind_s = self._raised_s = self._lowered_s = -1e9
        self._lower_after_s = LOWER_S

    def _leave_out(self, entry: Entry) -> None:
        """What it was missing is missing before the next message of its publisher."""
        self.left_out += 1
        self.discarded += entry.discardable
        for other in self.queue:
            if other.source == entry.source and other.seq > entry.seq:
                other.lost += entry.lost + 1
                return
        self._missed[entry.source] += entry.lost + 1
        self._forget(entry.source)
        if entry.payload and not entry.discardable and not self.reliable:
            self._newest[entry.source] = entry
            self.bytes += len(entry.payload)
            if len(self._newest) > NEWEST:
                self._forget(next(iter(self._newest)))

    def _forget(self, source: int) -> None:
        if (entry := self._newest.pop(source, None)) is not None:
            self.bytes -= len(entry.payload)

    def recall(self, now_s: float) -> bool:
        """Whether one that was left out is queued again, because it stayed its publisher's newest."""
        for source, entry in self._newest.items():
            if now_s - entry.at_s > QUIET_S:
                self._forget(source)
                self.left_out -= 1
                entry.lost = self._missed.pop(source) - 1
                self.queue.append(entry)
                self.bytes += len(entry.payload)
                return True
        return False

    # ---------------------------------------------------------------- for the backlog

    def admit(self, entry: Entry, now_s: float) -> bool:
        """Whether the message is queued; what is not is counted."""
        if not self.reliable:
            if entry.seq % self.every or (entry.discardable and (self.every > 1 or len(self.queue) >= PRESSED)):
                self._leave_out(entry)
                return False
            self._lower(now_s)
        entry.lost += self._missed.pop(entry.source, 0)
        self._forget(entry.source)
        self.queue.append(entry)
        self.bytes += len(entry.payload)
        return True

    def overfull(self, now_s: float) -> bool:
        waiting = len(self.queue)
        return waiting > BURST or (waiting > QUEUED and now_s - self.queue[0].at_s > BURST_S)

    def shorten(self, now_s: float) -> bool:
        """Leave out one that waits: the oldest discardable one, else the oldest. Whether `every` was changed."""
        at = next((place for place, entry in enumerate(self.queue) if entry.discardable), 0)
        entry = self.queue[at]
        del self.queue[at]
        self.bytes -= len(entry.payload)
        self._leave_out(entry)
        self._behind_s = now_s
        if entry.discardable or now_s - self._raised_s < RAISE_S or self.every >= MOST_FACTOR:
            return False
        # Behind again right after having been trusted: wait longer before the next try.
        soon = now_s - self._lowered_s < 2 * LOWER_S
        self._lower_after_s = min(MOST_LOWER_S, self._lower_after_s * 2) if soon else LOWER_S
        self._raised_s = now_s
        self.every *= 2
        return True

    def squeeze(self, now_s: float) -> bool:
        """Use less memory: first without what was left out already. Whether `every` was changed."""
        if self._newest:
            self._forget(next(iter(self._newest)))
            return False
        return self.shorten(now_s)

    def _lower(self, now_s: float) -> None:
        since = max(self._behind_s, self._lowered_s, self._raised_s)
        if self.every > 1 and len(self.queue) < PRESSED and now_s - since > self._lower_after_s:
            self.every //= 2
            self._lowered_s = now_s

    def take(self, now_s: float) -> Entry:
        """The oldest; it is on its way now."""
        entry = self.queue.popleft()
        self.bytes -= len(entry.payload)
        self.window.sent()
        self.on_room()
        return entry

    def note_sent(self, entry: Entry, now_s: float) -> None:
        if not self.reliable:
            entry.payload = b""  # it is never sent again
        self._on_way.append((now_s, entry))
        self._on_way_bytes += len(entry.payload)


class Backlog:
    """All streams of one page."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._streams: dict[int, Stream] = {}
        self._orders = 0

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams.values())

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, number: int) -> bool:
        return number in self._streams

    def get(self, number: int) -> Stream | None:
        return self._streams.get(number)

    def add(self, stream: Stream) -> None:
        self._streams[stream.number] = stream

    def remove(self, number: int) -> None:
        self._streams.pop(number, None)

    @property
    def bytes(self) -> int:
        return sum(stream.bytes for stream in self._streams.values())

    def has_room(self, stream: Stream) -> bool:
        """For a reliable stream, whether its reader may go on."""
        return len(stream.queue) < QUEUED and (not stream.queue or stream.bytes < self._most_bytes)

    def push(self, stream: Stream, entry: Entry, now_s: float) -> list[Stream]:
        """Queue a message, leaving out what is too much. Returns the streams whose `every` was changed by that."""
        before = stream.every
        entry.at_s = now_s
        self._orders += 1
        entry.order = self._orders
        if stream.admit(entry, now_s):
            while not stream.reliable and stream.overfull(now_s):
                stream.shorten(now_s)
        changed = [stream] if stream.every != before else []
        while self.bytes > self._most_bytes:
            victims = [one for one in self._streams.values() if not one.reliable and one.bytes]
            if not victims or sum(one.kept for one in victims) == 1:
                break  # a single message longer than all that may wait
            victim = min(victims, key=lambda one: (one.priority, -one.bytes))
            if victim.squeeze(now_s) and victim not in changed:
                changed.append(victim)
        return changed

    def take(self, now_s: float) -> tuple[Stream, Entry] | None:
        """What is to be sent next: of the most important stream that may send, the oldest."""
        ready = [stream for stream in self._streams.values() if stream.waits(self._most_bytes)]
        if not ready:
            ready = [
                one for one in self._streams.values() if not one.queue and one.recall(now_s) and one.window.is_open
            ]
        if not ready:
            return None
        stream = min(ready, key=lambda one: (-one.priority, one.queue[0].order))
        return stream, stream.take(now_s)
