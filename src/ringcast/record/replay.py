"""Replay: a recording back onto tags, with the time between messages as it was, or scaled.

`Timeline` says when a message is due and owns no clock; `Replay` owns the publishers. Invariant: a message has the
bytes and the event time that it had; its number and send time are those of the replay. Each recorded stream gets a
publisher of its own, so that streams that were apart stay apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringcast.errors import RecordingError
from ringcast.model.tag import TagAttributes, check_name, matches
from ringcast.publisher import Publisher
from ringcast.record.recording import Recording
from ringcast.session import NOT_NAMED, Session

Source = Iterator[tuple[pa.RecordBatch, dict[str, TagAttributes]]]

AS_FAST_AS_POSSIBLE = float("inf")
_MANY_MS = 1000


class Timeline:
    """Maps times of the recording to times of now. `speed` 2 is twice as fast; infinite waits for nothing.

    A recorded time that lies before one already seen is due at once: clocks of several nodes disagree.
    """

    def __init__(self, speed: float, now_ns: int) -> None:
        if not speed > 0:
            raise ValueError(f"speed is a number above 0, not {speed}")
        self._speed = speed
        self._began_ns = now_ns
        self._first_ns: int | None = None

    def due_ns(self, recorded_ns: int) -> int:
        """When to send what was sent at `recorded_ns`."""
        if self._first_ns is None:
            self._first_ns = recorded_ns
        if self._speed == AS_FAST_AS_POSSIBLE:
            return self._began_ns
        return self._began_ns + round((recorded_ns - self._first_ns) / self._speed)


@dataclass
class Renaming:
    """Which tag a recorded one is replayed on: `names` first, then `prefix` before whatever it is called."""

    names: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def __call__(self, tag: str) -> str:
        """Raises BadTagName."""
        return check_name(self.names.get(tag, f"{self.prefix}{tag}"))


def open_recording(path: str, pattern: str = "**") -> Source:
    """Rows of a recorded directory or MCAP file, in about the order of their arrival. Raises RecordingError."""
    if Path(path).is_dir():
        return _directory(Recording(path), pattern)
    from ringcast.record.mcap_file import read_mcap

    return ((batch, attributes) for batch, attributes in read_mcap(path))


def _directory(recording: Recording, pattern: str) -> Source:
    attributes: dict[str, TagAttributes] = {}
    for commit in recording.commits:
        for span in commit.spans:
            schema = None if span.schema_id is None else recording.schema(span.schema_id)
            attributes[span.tag] = TagAttributes(codec=span.codec, schema=schema)
        if any(matches(pattern, span.tag) or pattern == "**" for span in commit.spans):
            batches = list(recording.batches(commit))
            if batches:
                yield pa.Table.from_batches(batches).combine_chunks().to_batches()[0], attributes


class Replay:
    """Publishes what `source` gives. `clock_ns` and `sleep` are the machine's unless a test brings its own."""

    def __init__(
        self,
        session: Session,
        *,
        speed: float = 1.0,
        rename: Callable[[str], str] = Renaming(),
        pattern: str = "**",
        wait_for: int = 0,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], object] = time.sleep,
        on_progress: Callable[[int, int], None] = lambda sent, recorded_ns: None,
    ) -> None:
        self._session = session
        self._rename = rename
        self._pattern = pattern
        self._wait_for = wait_for
        self._clock_ns = clock_ns
        self._sleep = sleep
        self._on_progress = on_progress
        self._publishers: dict[tuple[str, str], Publisher] = {}
        self._speed = speed
        self._timeline: Timeline | None = None
        self._stopped = False
        self.sent = 0

    def stop(self) -> None:
        self._stopped = True

    def run(self, source: Source) -> int:
        """How many were sent. Raises RecordingError, BadTagName, TagConflict, MessageTooLarge and as `send` does."""
        try:
            for batch, attributes in source:
                if self._stopped:
                    break
                self._send_batch(batch, attributes)
        finally:
            for publisher in self._publishers.values():
                publisher.close()
        return self.sent

    def _send_batch(self, batch: pa.RecordBatch, attributes: dict[str, TagAttributes]) -> None:
        # Streams came in turns; in time they lie side by side. Stable, so that a stream's own order stays.
        sent = batch["sent_ns"].to_numpy()
        order = np.argsort(sent, kind="stable")
        ordered = batch.take(pa.array(order))
        keys = pc.binary_join_element_wise(ordered["tag"], ordered["incarnation"], "\n").to_pylist()
        rows = zip(
            keys, ordered["sent_ns"].to_pylist(), ordered["event_ns"].to_pylist(), ordered["discardable"].to_pylist(),
            ordered["payload"].to_pylist(), strict=True,
        )  # fmt: skip
        for key, sent_ns, event_ns, discardable, payload in rows:
            tag, _, incarnation = key.partition("\n")
            if self._pattern != "**" and not matches(self._pattern, tag):
                continue
            publisher = self._publisher(tag, incarnation, attributes.get(tag, TagAttributes()))
            if self._timeline is None:  # not before somebody listens, if that was asked for
                self._timeline = Timeline(self._speed, self._clock_ns())
            due_ns = self._timeline.due_ns(sent_ns)
            while (wait_ns := due_ns - self._clock_ns()) > 0 and not self._stopped:
                self._on_progress(self.sent, sent_ns)
                self._sleep(min(wait_ns, _MANY_MS * 1_000_000) / 1e9)
            if self._stopped:
                return
            publisher.send(payload, event_ns=event_ns, discardable=discardable)
            self.sent += 1
        self._on_progress(self.sent, int(sent[order[-1]]))

    def _publisher(self, tag: str, incarnation: str, attributes: TagAttributes) -> Publisher:
        key = (tag, incarnation)
        if key not in self._publishers:
            name = self._rename(tag)
            if name.startswith("@"):
                raise RecordingError(
                    tag, "tags that begin with @ are the system's; replay it with --rename or --prefix"
                )
            handle = self._session.tag(
                name, codec=attributes.codec, schema=NOT_NAMED if attributes.schema is None else attributes.schema
            )
            self._publishers[key] = handle.publisher(encoded=True)
            if self._wait_for:
                self._publishers[key].wait_for_subscribers(self._wait_for)
        return self._publishers[key]
