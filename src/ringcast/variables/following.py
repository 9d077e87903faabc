"""A subscription to variables: one service thread, a table per owner, and whoever is to be told.

The thread receives chunks, brings the tables up to date and tells, with arrays; nothing runs per variable. Invariants:
a variable is one owner's, the first that had the name and is still heard of; whatever was lost, everything is right
again after a full packet.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ringcast import _core
from ringcast.client.decoding import Undecoded
from ringcast.client.ring_following import Scaling
from ringcast.client.rings.subscribed import SubscribedRings
from ringcast.errors import ClosedError
from ringcast.model.closing import Closing
from ringcast.model.identity import PublisherInfo
from ringcast.notify import Interrupted, OnError, Service
from ringcast.variables.changes import Changes

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.tag import Tag

logger = logging.getLogger("ringcast")

_BATCH = 1024
_MOST_OWNERS = 64
_SILENT_FRAMES = 3
_LEAST_SILENCE_S = 3.0


class _Owned(_core.VariableTable):
    """What is known of one owner's variables."""

    def __init__(self, info: PublisherInfo) -> None:
        super().__init__()
        self.info = info
        self.heard_s = time.monotonic()

    def silent(self, now_s: float) -> bool:
        """Whether it missed several frames, and somebody else may have its names."""
        return now_s - self.heard_s > max(_LEAST_SILENCE_S, _SILENT_FRAMES * self.frame_ms / 1e3)


class ChangeQueue:
    """Made by `sub.queue`. Any number of threads may take from it. When it is full the oldest is dropped and counted in
    `skipped`."""

    def __init__(self, maxsize: int) -> None:
        if maxsize < 1:
            raise ValueError(f"maxsize is at least 1, not {maxsize}; every queue here is bounded")
        self.skipped = 0
        self._held: deque[Changes] = deque()
        self._maxsize = maxsize
        self._changed = threading.Condition()
        self._over = False

    def get(self, timeout: float | None = None) -> Changes:
        """Raises TimeoutError; ClosedError once the subscription is closed and nothing is left."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._held or self._over, timeout):
                raise TimeoutError(f"no variable within {timeout:g} s")
            if not self._held:
                raise ClosedError("subscription")
            return self._held.popleft()

    def __len__(self) -> int:
        return len(self._held)

    def put(self, changes: Changes) -> None:
        with self._changed:
            if len(self._held) >= self._maxsize:
                self._held.popleft()
                self.skipped += 1
            self._held.append(changes)
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


class VariablesSubscription(Closing):
    """Made by `variables.subscribe`. It is the blackboard itself: `sub[name]` is the newest value here, and
    `sub.wait_newer` waits for another; `on_change`, `queue` and `event` tell of arrivals."""

    def __init__(
        self, attachment: Attachment, tag: Tag[Any], patterns: tuple[str, ...], *, at: str, transport: str,
        reliable: bool, busy_poll: bool, look_out: bool,
    ) -> None:  # fmt: skip
        self.patterns = patterns
        self.conflicts = 0
        """Names that a second owner has too; the first one's count."""
        self._rings = SubscribedRings(
            attachment, tag.name, Undecoded(), start="new", reliable=reliable, busy_poll=busy_poll,
            scaling=Scaling(at=at, transport=transport), tag=tag,
        )  # fmt: skip
        self._owners: dict[int, _Owned] = {}
        self._callbacks: list[tuple[Callable[[Changes], object], OnError | None]] = []
        self._queues: list[ChangeQueue] = []
        self._events: list[threading.Event] = []
        self._news = threading.Condition()
        self._arrived = 0
        self._over = False
        self._following = _Following(self, self._rings, look_out)
        self._rings.registration.consumed_by(self._following)
        attachment.employs(self._following)

    # ---------------------------------------------------------------- being told

    def on_change(self, callback: Callable[[Changes], object], on_error: OnError | None = None) -> None:
        """Call `callback(changes)` on the subscription's own thread whenever something came. While it runs nothing
        else is told; what comes meanwhile waits in the ring, and what that loses the next full packet brings. An
        exception is logged, counted and given to `on_error(error, changes)`."""
        with self._news:
            self._callbacks = [*self._callbacks, (callback, on_error)]

    def queue(self, maxsize: int = 1024) -> ChangeQueue:
        """A bounded queue of Changes. Raises ValueError."""
        made = ChangeQueue(maxsize)
        with self._news:
            self._queues = [*self._queues, made]
            if self._over:
                made.end()
        return made

    def event(self) -> threading.Event:
        """Set whenever something came, cleared by you; set for good when the subscription is closed."""
        made = threading.Event()
        with self._news:
            self._events = [*self._events, made]
            if self._over:
                made.set()
        return made

    def wait_newer(self, than: int = 0, timeout: float | None = None) -> int:
        """Wait until more arrivals than `than` were told; returns how many there were. So `n = sub.wait_newer(n)` in a
        loop sees every change of the blackboard. Raises TimeoutError, ClosedError."""
        with self._news:
            if not self._news.wait_for(lambda: self._arrived > than or self._over, timeout):
                raise TimeoutError(f"no variable within {timeout:g} s")
            if self._arrived <= than:
                raise ClosedError("subscription")
            return self._arrived

    def wait_complete(self, timeout: float | None = None) -> None:
        """Wait until some owner was heard of and every variable of every owner heard of is here. Raises TimeoutError,
        ClosedError."""
        with self._news:
            if not self._news.wait_for(lambda: self.complete or self._over, timeout):
                known = sum(len(owned) for owned in self._owners.values())
                raise TimeoutError(
                    f"{known} variables of {len(self._owners)} owner(s) after {timeout:g} s, and not all; a program "
                    "that owns some must run, and send a full packet once in a frame"
                )
            if self._over and not self.complete:
                raise ClosedError("subscription")

    # ---------------------------------------------------------------- the blackboard

    @property
    def complete(self) -> bool:
        now_s = time.monotonic()
        owners = [owned for owned in list(self._owners.values()) if not owned.silent(now_s)]
        return bool(owners) and all(owned.complete for owned in owners)

    def __getitem__(self, name: str) -> Any:
        """The newest value here. Raises KeyError."""
        return self.table_of(name).get(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        found: dict[str, None] = {}
        for owned in list(self._owners.values()):
            found.update(dict.fromkeys(owned.names()))
        return list(found)

    def time_ns(self, name: str) -> int:
        """When the value was set, as its owner says. Raises KeyError."""
        table = self.table_of(name)
        return int(table.times(np.array([table.index(name)], dtype=np.uint32))[0])

    def table_of(self, name: str) -> _core.VariableTable:
        """The table of the owner of a variable. Raises KeyError."""
        owned = self._find(name)
        if owned is None:
            tag = self._rings.registration.pattern
            raise KeyError(
                f"nobody has a variable {name!r} in {tag!r}; its owner makes it with add(name, value), "
                f"and 'ringcast vars {tag}' lists what there is"
            )
        return owned

    def owner_of(self, name: str) -> PublisherInfo:
        """Raises KeyError."""
        self.table_of(name)
        owned = self._find(name)
        assert owned is not None
        return owned.info

    def owners(self) -> list[PublisherInfo]:
        """Those heard of, in that order."""
        return [owned.info for owned in list(self._owners.values())]

    def counters(self) -> dict[str, int]:
        """Sums over the owners: values, packets, fulls, unknown (values before their names), refused, malformed; and
        lost, chunks that did not come."""
        total: dict[str, int] = {"lost": self._rings.lost}
        for owned in list(self._owners.values()):
            for name, count in owned.counters().items():
                total[name] = total.get(name, 0) + count
        return total

    def _find(self, name: str) -> _Owned | None:
        now_s = time.monotonic()
        fallback: _Owned | None = None
        for owned in list(self._owners.values()):
            if owned.index(name) is not None:
                if not owned.silent(now_s):
                    return owned
                fallback = owned  # nobody who is heard of has it: the last value of whoever had it last
        return fallback

    # ---------------------------------------------------------------- the service thread

    def found(self, publisher: PublisherInfo) -> _Owned:
        """The table of whoever sends a ring that is read for the first time."""
        return self._owners.get(publisher.incarnation) or self._admit(_Owned(publisher))

    def took(
        self, owned: _Owned, told: _core.ToldVariables, lost: int, sent_ns: int, kernel_ns: int, arrived_ns: int
    ) -> None:
        """Chunks of one owner came, and are in its table."""
        owned.heard_s = time.monotonic()
        if owned.info.incarnation not in self._owners:  # others came meanwhile, more than are remembered
            self._admit(owned)
        if len(self._owners) > 1:
            self._look_for_conflicts(owned, told.indices(), told.how())
        # A heads-up alone goes this way too, as far as the application, and makes it warm for what it announces.
        counts = not told.heads_up or len(told) > 0
        self._tell(Changes(owned.info, owned, told, lost, sent_ns, kernel_ns, arrived_ns), counts)

    def _admit(self, owned: _Owned) -> _Owned:
        with self._news:
            while len(self._owners) >= _MOST_OWNERS:
                del self._owners[min(self._owners, key=lambda known: self._owners[known].heard_s)]
            self._owners[owned.info.incarnation] = owned
        return owned

    def _look_for_conflicts(self, owned: _Owned, indices: Any, how: Any) -> None:
        declared = indices[(how & _core.HOW_DECLARED) != 0].tolist()
        now_s = time.monotonic()
        others = [other for other in self._owners.values() if other is not owned and not other.silent(now_s)]
        for name in filter(None, map(owned.name, declared)):
            for other in others:
                if other.index(name) is not None:
                    self.conflicts += 1
                    if self.conflicts.bit_count() == 1:
                        logger.warning(
                            "variable %r has two owners, %s and %s; the first one's value is shown (%d such names)",
                            name, other.info, owned.info, self.conflicts,
                        )  # fmt: skip

    def _tell(self, changes: Changes, counts: bool) -> None:
        if len(changes):
            for callback, on_error in self._callbacks:
                self._following.call(callback, on_error, changes)
            if self._queues:
                kept = changes.keep()
                for queue in self._queues:
                    queue.put(kept)
            for event in self._events:
                event.set()
        with self._news:
            self._arrived += counts
            self._news.notify_all()

    def ended(self) -> None:
        with self._news:
            self._over = True
            self._news.notify_all()
            for queue in self._queues:
                queue.end()
            for event in self._events:
                event.set()

    # ---------------------------------------------------------------- the end

    @property
    def failed(self) -> int:
        """Callbacks that raised, and receives that failed."""
        return self._following.failed

    @property
    def closed(self) -> bool:
        return self._rings.closed

    def close(self) -> None:
        """A second call does nothing."""
        self._following.close()
        self._rings.close()

    def __repr__(self) -> str:
        return f"<VariablesSubscription to {', '.join(self.patterns)} of {self._rings.registration.pattern!r}>"


class _Following(Service):
    """The thread of one subscription."""

    def __init__(self, subscription: VariablesSubscription, rings: SubscribedRings, look_out: bool) -> None:
        super().__init__(rings, rings.registration, None)
        self._subscription = subscription
        self._look_out = look_out
        self._rings = rings

    def call(self, callback: Callable[[Changes], object], on_error: OnError | None, changes: Changes) -> None:
        try:
            callback(changes)
            self.delivered += 1
        except Exception as exc:
            self._report(exc, changes)
            if on_error is not None:
                on_error(exc, changes)

    def _turn(self) -> None:
        for part in self._rings.recv_chunks(self._subscription.found, _BATCH, None, self._look_out):
            self._subscription.took(*part)

    def _wake(self) -> None:
        self._rings.registration.interrupt(self, Interrupted())

    def _ended(self) -> None:
        self._rings.registration.consumer_left(self)
        self._subscription.ended()
