"""One view on this node: a thread that reads the tag's rings, applies the policy and publishes what is left.

Every publisher of the tag has a publisher of the view, so that numbers and indices stay each one's own. At the
publisher the thread reads the rings of publishers of this node where they are, as a history does; elsewhere it
subscribes, and the whole stream comes to this node. Invariant: a publisher that left takes its part of the view with
it.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Protocol

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Undecoded
from ringcast.client.rings.subscribed import SubscribedRings
from ringcast.errors import ClosedError, CorruptRing, RingcastError
from ringcast.model.identity import PublisherInfo
from ringcast.model.policy import OnChange, Periodic, View
from ringcast.publisher import Publisher
from ringcast.tag import Tag
from ringcast.variables.opening import CHUNK_BYTES
from ringcast.views.plain import PlainView, Sample

logger = logging.getLogger("ringcast")

_BATCH = 1024
_LONGEST_WAIT_S = 0.25
_FORGET_S = 5.0


class Part(Protocol):
    """One publisher's part of a view."""

    heard_s: float
    publisher: Publisher[Any]

    def feed(self, messages: list[_core.Message[Any]], now_ns: int) -> None: ...
    def send(self, now_ns: int) -> None: ...
    @property
    def wake_at_ns(self) -> int: ...


class VariablesPart:
    def __init__(self, view: View, publisher: Publisher[Any]) -> None:
        policy = view.policy
        changed = policy if isinstance(policy, OnChange) else OnChange()
        self.heard_s = time.monotonic()
        self.publisher = publisher
        self._known = 0
        self._view = _core.VariableView(
            list(view.select) or ["**"],
            mode=str(policy.__struct_config__.tag),
            period_s=policy.period_s if isinstance(policy, Periodic | OnChange) else 0.0, dead_band=changed.dead_band,
            least_s=changed.least_s, longest_s=changed.longest_s, by_value=changed.by == "value",
            frame_s=view.frame_s, limit=CHUNK_BYTES,
        )  # fmt: skip

    def feed(self, messages: list[_core.Message[Any]], now_ns: int) -> None:
        self._view.feed([message.data for message in messages], [message.event_ns for message in messages])

    def send(self, now_ns: int) -> None:
        before, self._known = self._known, self.publisher.subscribers
        chunks = self._view.poll(now_ns, self._known > before)
        if chunks:
            self.publisher.send_many(chunks, self._view.newest_ns)

    @property
    def wake_at_ns(self) -> int:
        return self._view.wake_at_ns


class PlainPart:
    def __init__(self, view: View, codec: str, publisher: Publisher[Any]) -> None:
        self.heard_s = time.monotonic()
        self.publisher = publisher
        self._view = PlainView(view.policy, codec)

    def feed(self, messages: list[_core.Message[Any]], now_ns: int) -> None:
        for message in messages:
            self._view.feed(message.data, message.event_ns)
            if len(messages) > 1:  # each may be the one that changed
                self._send(self._view.poll(now_ns))

    def send(self, now_ns: int) -> None:
        self._send(self._view.poll(now_ns))

    def _send(self, samples: list[Sample]) -> None:
        for payload, event_ns, repeated in samples:
            self.publisher.send(payload, event_ns, repeated)

    @property
    def wake_at_ns(self) -> int:
        return self._view.wake_at_ns


class ViewRunner:
    """Raises what `tag.subscribe` does."""

    def __init__(self, attachment: Attachment, base: Tag[Any], shown: Tag[Any], view: View) -> None:
        self.view = view
        self._base = base
        self._shown = shown
        own = view.at == "publisher"
        self._rings = SubscribedRings(
            attachment, base.name, Undecoded(), start="earliest" if own else "new", tag=base,
            role="history" if own else "subscriber",
        )  # fmt: skip
        self._parts: dict[int, Part] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"view-of-{base.name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def keep_only(self, alive: set[int]) -> None:
        """Publishers that are there, by incarnation; the parts of others end after a moment."""
        now_s = time.monotonic()
        for incarnation, part in list(self._parts.items()):
            if incarnation not in alive and now_s - part.heard_s > _FORGET_S:
                del self._parts[incarnation]
                part.publisher.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
            except ClosedError:
                return
            except CorruptRing as exc:
                logger.warning("a publisher of %r damaged its ring: %s", self._base.name, exc)
            except RingcastError as exc:
                logger.error("the view of %r ends: %s", self._base.name, exc)
                return

    def _turn(self) -> None:
        now_ns = _core.utc_ns()
        wake_ns = min((part.wake_at_ns for part in list(self._parts.values())), default=now_ns + 10**9)
        wait_s = min(max(0.0, (wake_ns - now_ns) / 1e9), _LONGEST_WAIT_S)
        try:
            messages = self._rings.recv_many(_BATCH, timeout=wait_s)
        except TimeoutError:
            messages = []
        now_ns = _core.utc_ns()
        by_publisher: dict[int, list[_core.Message[Any]]] = {}
        for message in messages:
            by_publisher.setdefault(message.publisher.incarnation, []).append(message)
        for incarnation, some in by_publisher.items():
            part = self._parts.get(incarnation)
            if part is None:
                part = self._parts[incarnation] = self._part(some[0].publisher)
            part.heard_s = time.monotonic()
            part.feed(some, now_ns)
        for part in list(self._parts.values()):
            part.send(now_ns)

    def _part(self, info: PublisherInfo) -> Part:
        publisher: Publisher[Any] = self._shown.publisher("skip", encoded=True)
        logger.debug("a view of %s begins", info)
        if self._base.attributes.codec == "variables":
            return VariablesPart(self.view, publisher)
        return PlainPart(self.view, self._base.attributes.codec, publisher)

    def close(self) -> None:
        self._stopping.set()
        self._rings.close()
        if self._thread is not threading.current_thread():
            self._thread.join(_FORGET_S)
        for part in self._parts.values():
            part.publisher.close()
