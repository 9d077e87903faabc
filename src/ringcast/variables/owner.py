"""The owner's side of variables: a table, a publisher, and a thread that sends a packet per cycle.

A cycle sends what changed since the one before; a frame sends everything, and so does a cycle after somebody joined.
Shortly before a packet a heads-up may go the same way: after a pause of milliseconds nothing on the way, in kernels
or programs at either end, is in a cache any more, and the first packet pays for that.
Invariants: cycles lie on a fixed grid, so a late one does not shift the next; what could not be sent within its period
is counted in `late`, as the paper counts loss; nothing that the application sets waits for a packet being sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringcast import _core
from ringcast.errors import ClosedError, RingcastError

if TYPE_CHECKING:
    from ringcast.publisher import Publisher
    from ringcast.tag import Tag

logger = logging.getLogger("ringcast")

_JOIN_S = 5.0
LEAD_NS = 400_000
"""How long before its packet a heads-up is sent, at most: as long as it takes itself, where everything is cold."""
_LEAD_SHARE = 25
_LEAST_PERIOD_NS = 2_000_000
"""In a shorter period nothing grows cold."""
FULL_SHARE = 0.8
"""Of a frame, after which the next full packet is sent: what is lost of it is repaired before the frame ends."""


def lead(period_ns: int) -> int:
    """How long before a packet of that period its heads-up is sent; 0 for none."""
    return min(LEAD_NS, period_ns // _LEAD_SHARE) if period_ns >= _LEAST_PERIOD_NS else 0


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


class Owner:
    """`period_s` 0: packets are sent by `flush` alone; full ones and those for joiners come by themselves all the same,
    unless `frame_s` is 0 and `on_join` False. Raises what `tag.publisher` does."""

    def __init__(
        self, tag: Tag[Any], *, period_s: float, frame_s: float, on_join: bool, chunk_bytes: int, heads_up: bool
    ) -> None:
        self.table = _core.VariableTable()
        self.period_s = period_s
        self.frame_s = frame_s
        self.late = 0
        """Variables whose packet was not sent within their period."""
        self.cycles = 0
        self._frame_ns = round(frame_s * 1e9)
        self._frame_ms = self._frame_ns // 1_000_000
        self._on_join = on_join
        self._chunk_bytes = chunk_bytes
        self._heads_up = heads_up
        self._period_ns = round(period_s * 1e9)
        self._publisher: Publisher[Any] = tag.publisher("skip", encoded=True)
        self._ring = self._publisher._ring
        self._lock = threading.Lock()
        self._known = 0
        self._full_ns = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ringcast-variables-{tag.name}", daemon=True)
        self._thread.start()

    @property
    def publisher(self) -> Publisher[Any]:
        return self._publisher

    def flush(self, full: bool = False) -> int:
        """Send what changed, or everything; how many chunks went. Raises ClosedError, TagDestroyed."""
        return self._flush(full, False)

    def heads_up(self) -> None:
        """Tell whoever follows that a packet comes within a moment. Raises ClosedError, TagDestroyed."""
        if self._publisher.subscribers:
            self._flush(False, True)

    # Both go the same way, so that the first has made it warm for the second.
    def _flush(self, full: bool, heads_up: bool) -> int:
        with self._lock:
            now_ns = time.monotonic_ns()
            if not heads_up:
                full = full or (self._frame_ns > 0 and now_ns >= self._full_ns) or self._joined()
            if full:
                self._full_ns = now_ns + round(self._frame_ns * FULL_SHARE)
            return self._ring.send_packet(
                self.table, full, heads_up, self._period_ns, self._frame_ms, self._chunk_bytes
            )

    def ticks(self, period_s: float, heads_up: bool) -> Iterator[int]:
        """The moments of a grid, each when it has come. Ends when the owner is closed."""
        self._period_ns = period_ns = round(period_s * 1e9)
        lead_ns = lead(period_ns) if heads_up else 0
        due_ns = time.monotonic_ns() + lead_ns
        while not self._stopping.is_set():
            # One that would come much later than it should helps nobody.
            if lead_ns and due_ns - time.monotonic_ns() > lead_ns // 2:
                _sleep_until(due_ns - lead_ns)
                if self._stopping.is_set():
                    return
                self.heads_up()
            _sleep_until(due_ns)
            yield due_ns
            due_ns += period_ns

    def _joined(self) -> bool:
        before, self._known = self._known, self._publisher.subscribers
        return self._on_join and self._known > before

    def _run(self) -> None:
        try:
            if self.period_s > 0:
                self._cycle()
            else:
                self._attend()
        except ClosedError:
            return  # with its session
        except RingcastError as exc:
            if not self._stopping.is_set():
                logger.error("variables of %r are sent no more: %s", self._publisher.tag.name, exc)

    def _cycle(self) -> None:
        period_ns = self._period_ns
        lead_ns = lead(period_ns) if self._heads_up else 0
        slot_ns = time.monotonic_ns() + period_ns
        while not self._stopping.wait(max(0, slot_ns - lead_ns - time.monotonic_ns()) / 1e9):
            if lead_ns and self.table.pending:
                self.heads_up()
            if lead_ns and self._stopping.wait(max(0, slot_ns - time.monotonic_ns()) / 1e9):
                return
            before = self.table.counters()["changes"]
            self.flush()
            self.cycles += 1
            slot_ns += period_ns
            behind_ns = time.monotonic_ns() - slot_ns
            if behind_ns > 0:
                self.late += max(1, self.table.counters()["changes"] - before)
                slot_ns += behind_ns // period_ns * period_ns

    def _attend(self) -> None:
        """Full packets and joiners of one who flushes by himself."""
        frame_s = self._frame_ns / 1e9 or _JOIN_S
        while not self._stopping.is_set():
            due_s = frame_s if not self._frame_ns else max(0.0, (self._full_ns - time.monotonic_ns()) / 1e9)
            try:
                self._publisher.wait_for_subscribers(self._known + 1 if self._on_join else 2**31, min(due_s, frame_s))
            except TimeoutError:
                with self._lock:
                    self._known = min(self._known, self._publisher.subscribers)
            if self._stopping.is_set():
                return
            if self._frame_ns and time.monotonic_ns() >= self._full_ns:
                self.flush(full=True)
            elif self._publisher.subscribers > self._known:
                self.flush()

    def close(self) -> None:
        self._stopping.set()
        # Closing the publisher ends a wait for subscribers.
        if not self._publisher.closed and self.table.pending:
            try:
                self.flush()
            except RingcastError as exc:
                logger.warning("the last changes of %r were not sent: %s", self._publisher.tag.name, exc)
        self._publisher.close()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)
