"""A recording as one MCAP file, for Foxglove and its like: bronze rows in, bronze rows out.

A channel per stream, whose metadata holds what a row says of it. MCAP has two times: `log_time` is when the message was
received, `publish_time` its event time. The send time and the upper half of the number are not in the format: reading
gives the event time for the one and counts on for the other. The file has its name once it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa
from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.writer import Writer

from ringcast.errors import DiskFull, RecordingError
from ringcast.model.closing import Closing
from ringcast.model.tag import TagAttributes
from ringcast.record.bronze import SCHEMA
from ringcast.record.recording import BATCH_ROWS
from ringcast.record.writer import FULL

_ENCODINGS = {"json": "json", "msgpack": "msgpack", "numpy": "x-numpy", "bytes": "application/octet-stream"}
_WORD = 2**32


class McapSink(Closing):
    """Call it with batches, then `close`; only that gives the file its name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._part = self.path.with_name(self.path.name + ".part")
        self._schemas: dict[str, int] = {}
        self._channels: dict[tuple[str, str], int] = {}
        self.rows = 0
        try:
            self._file: IO[bytes] | None = open(self._part, "wb")  # noqa: SIM115 - open for as long as this is
        except OSError as exc:
            raise RecordingError(str(self.path), f"it cannot be written ({exc})") from exc
        self._writer = Writer(self._file)
        self._writer.start(profile="", library="ringcast")

    def __call__(self, batch: pa.RecordBatch, attributes: dict[str, TagAttributes]) -> None:
        """Raises RecordingError, DiskFull."""
        try:
            for row in batch.to_pylist():
                self._writer.add_message(
                    channel_id=self._channel(row, attributes), log_time=max(0, row["received_ns"]),
                    publish_time=max(0, row["event_ns"]), sequence=row["seq"] % _WORD, data=row["payload"],
                )  # fmt: skip
                self.rows += 1
        except OSError as exc:
            raise self._failure(exc) from exc

    def close(self) -> None:
        """Raises RecordingError, DiskFull."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            self._writer.finish()  # type: ignore[no-untyped-call]
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(self._part, self.path)
        except OSError as exc:
            raise self._failure(exc) from exc

    def _failure(self, error: OSError) -> RecordingError:
        if error.errno in FULL:
            return DiskFull(str(self.path), 0)
        return RecordingError(str(self.path), f"it cannot be written ({error})")

    def _channel(self, row: dict[str, Any], attributes: dict[str, TagAttributes]) -> int:
        key = (row["tag"], row["incarnation"])
        if key not in self._channels:
            known = attributes.get(row["tag"])
            metadata = {
                name: str(row[name]) for name in ("publisher", "incarnation", "node", "every", "codec", "schema_id")
            }
            schema = 0
            if known is not None and known.schema is not None:
                schema = self._schema(row["tag"], row["schema_id"], known)
            self._channels[key] = self._writer.register_channel(
                topic=row["tag"], message_encoding=_ENCODINGS.get(row["codec"], row["codec"]), schema_id=schema,
                metadata=metadata,
            )  # fmt: skip
        return self._channels[key]

    def _schema(self, tag: str, schema_id: str, attributes: TagAttributes) -> int:
        if schema_id not in self._schemas:
            # What Foxglove calls jsonschema must say that it is an object.
            kind = "jsonschema" if (attributes.schema or {}).get("type") == "object" else "x-ringcast"
            self._schemas[schema_id] = self._writer.register_schema(
                name=tag, encoding=kind, data=msgspec.json.encode(attributes.schema)
            )
        return self._schemas[schema_id]


def read_mcap(path: str | os.PathLike[str]) -> Iterator[tuple[pa.RecordBatch, dict[str, TagAttributes]]]:
    """Bronze rows of any MCAP file, in the order of `log_time`, and what is known of their tags.

    Raises RecordingError.
    """
    attributes: dict[str, TagAttributes] = {}
    rows: list[dict[str, Any]] = []
    above: dict[int, int] = {}
    try:
        with open(path, "rb") as file:
            for schema, channel, message in make_reader(file).iter_messages():
                meta = channel.metadata
                codec = meta.get("codec") or ("json" if channel.message_encoding == "json" else "bytes")
                if channel.topic not in attributes:
                    known = schema is not None and schema.encoding in ("jsonschema", "x-ringcast")
                    attributes[channel.topic] = TagAttributes(
                        codec=codec, schema=msgspec.json.decode(schema.data) if known and schema is not None else None
                    )
                # A 32-bit number that falls back has begun anew.
                seq = above.get(channel.id, 0) // _WORD * _WORD + message.sequence
                seq += _WORD if seq + _WORD // 2 < above.get(channel.id, 0) else 0
                above[channel.id] = seq
                schema_name = meta.get("schema_id", "None")
                rows.append({
                    "tag": channel.topic, "publisher": meta.get("publisher", "mcap"),
                    "incarnation": meta.get("incarnation", f"{channel.id:016x}"), "node": meta.get("node", "mcap"),
                    "seq": seq, "every": int(meta.get("every", "1")), "event_time": message.publish_time // 1000,
                    "event_ns": message.publish_time, "sent_ns": message.publish_time,
                    "received_ns": message.log_time, "lost": 0, "discardable": False, "codec": codec,
                    "schema_id": None if schema_name == "None" else schema_name, "payload": message.data,
                })  # fmt: skip
                if len(rows) >= BATCH_ROWS:
                    yield pa.RecordBatch.from_pylist(rows, SCHEMA), attributes
                    rows = []
    except (OSError, McapError, msgspec.MsgspecError, ValueError) as exc:
        raise RecordingError(str(path), f"it is no whole MCAP file ({exc or type(exc).__name__})") from exc
    if rows:
        yield pa.RecordBatch.from_pylist(rows, SCHEMA), attributes
