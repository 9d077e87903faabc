"""A proxy's stage: a cursor on one ring, a scaler, and the ring it feeds.

The same stage runs inside `send` at the publisher (`pump` after every message) and in a process of its own on a node in
between (`run`). Invariants: what it writes has the numbers and times of the publisher and its order, whichever thread
pumps; what it could not have, or could not scale, shows as loss in its ring and nowhere else; a scaler's exception ends
nothing. Must not know who reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from ringcast import _core
from ringcast.errors import ClosedError, CorruptRing, RingcastError, WouldBlock
from ringcast.model.tag import TagAttributes
from ringcast.scaling.interface import Size
from ringcast.scaling.registry import scaler_for

logger = logging.getLogger("ringcast")

_BATCH = 64


class StageSource(NamedTuple):
    """The ring to read. Descriptors stay the caller's."""

    ring_fd: int
    bell_fd: int
    depth: int
    capacity_bytes: int
    ring: int


class Stage:
    """`first_seq` is where it begins, and `passed` how many before it are lost. A reliable one makes the writer of its
    source wait for it.

    Raises QosMismatch (no scaler for the tag's codec), CorruptRing, ResourceLimit.
    """

    def __init__(
        self, source: StageSource, attributes: TagAttributes, size: Size, *, every: int = 1, first_seq: int = 0,
        reliable: bool = False, passed: int = 0,
    ) -> None:  # fmt: skip
        self._scaler = scaler_for(attributes.codec, size)
        self._attributes = attributes
        self._size = size
        self._lock = threading.Lock()
        self._skipped = passed
        self.failed = 0
        """Messages that could not be scaled."""
        self.discarded = 0
        """Discardable messages that were left out while this stage was behind."""
        self._reliable = reliable
        self._reader = _core.RingReader(reliable=reliable, what="stage")
        self._reader.attach(
            source.ring_fd, source.bell_fd, depth=source.depth, capacity_bytes=source.capacity_bytes,
            incarnation=source.ring, start=first_seq, every=every,
        )  # fmt: skip
        self.writer = _core.StageWriter(
            depth=source.depth, capacity_bytes=source.capacity_bytes, max_wait_s=attributes.max_wait_s,
            first_seq=first_seq,
        )  # fmt: skip

    def pump(self) -> int:
        """Scale what is there now; how many. Any thread: whoever comes second finds the work done, or does it."""
        done = 0
        with self._lock:
            try:
                while True:
                    # Bytes of our own: a message that is overwritten while it is scaled would be scaled into garbage.
                    self._take(self._reader.recv_nowait())
                    done += 1
            except (WouldBlock, ClosedError):
                return done
            except CorruptRing as exc:
                logger.error("a stage of size %s cannot go on: %s", self._size, exc)
                return done

    def run(self, ended: Callable[[], bool]) -> None:
        """Scale what comes until `ended` says so, which is looked at when poked, and then what is there.

        Raises CorruptRing when the source's writer damaged it.
        """
        while not ended():
            try:
                messages = self._reader.recv_many(_BATCH)
            except WouldBlock:
                continue
            except ClosedError:
                return
            # A full batch: more comes than can be scaled. What its publisher can do without goes first.
            behind = len(messages) == _BATCH and not self._reliable
            with self._lock:
                for message in messages:
                    if behind and message.discardable:
                        self._leave_out(message)
                    else:
                        self._take(message)
        self.pump()

    def poke(self) -> None:
        """Let `run` look whether it is to end."""
        if not self._reader.closed:
            self._reader.fail(WouldBlock())

    def close(self) -> None:
        self._reader.close()
        self.writer.close()

    def _leave_out(self, message: _core.Message[bytes]) -> None:
        self._skipped += message.lost + 1
        self.discarded += 1

    def _take(self, message: _core.Message[bytes]) -> None:
        self._skipped += message.lost
        try:
            payload = self._scaler.scale(message.data, self._attributes, self._size)
            self.writer.put(
                payload, seq=message.seq, event_ns=message.event_ns, sent_ns=message.sent_ns,
                discardable=message.discardable, lost=self._skipped,
            )  # fmt: skip
            self._skipped = 0
        except ClosedError:
            raise
        except Exception as exc:  # a plug-in may raise anything, and the next message may be better
            self._skipped += 1
            self.failed += 1
            if self.failed.bit_count() == 1:  # 1st, 2nd, 4th, 8th...
                kind = "" if isinstance(exc, RingcastError) else f"{type(exc).__name__}: "
                logger.warning(
                    "message %d cannot be scaled to %s: %s%s (%d in all)",
                    message.seq,
                    self._size,
                    kind,
                    exc,
                    self.failed,
                )
