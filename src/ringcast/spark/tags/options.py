"""The options of the format `ringcast`, checked once, where they are given. Values.

Spark hands options over as a case-insensitive mapping of strings; here they become what they mean. Must not be turned
into a plain dict on the way, which would lower their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from ringcast.model.tag import check_name, check_pattern


class Time(NamedTuple):
    """Begin with the first message sent at that moment or later."""

    ns: int


Starting = Literal["earliest", "latest"] | int | dict[str, int] | Time


class ReadOptions(NamedTuple):
    """`tag` None reads everything of the recording at `path`, and no live ring. With `streams`, which are incarnations,
    nothing else is read, and instead of names a row has its stream's place in that list (`frames`)."""

    tag: str | None
    path: str | None
    live: bool
    socket: str | None
    starting: Starting
    fail_on_data_loss: bool
    max_messages: int | None
    every: int
    decode: bool
    rows_per_partition: int
    arrow: bool
    streams: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        return self.tag if self.tag is not None else "**"

    @property
    def reads(self) -> str:
        """What a checkpoint is bound to."""
        scaled = f" every {self.every}" if self.every > 1 else ""
        return self.pattern + scaled


class WriteOptions(NamedTuple):
    """`batch` is the query and number of a batch that is written inside `foreachBatch`, and is to be published once."""

    tag: str
    socket: str | None
    codec: str | None
    state: str | None
    depth: int | None
    capacity_bytes: int | None
    batch: tuple[str, int] | None


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Raises ValueError, BadTagName."""
    known = {
        "tag", "path", "live", "socket", "startingOffsets", "failOnDataLoss", "maxMessagesPerTrigger", "every",
        "decode", "rowsPerPartition", "arrow", "streams",
    }  # fmt: skip
    _check_known(options, known)
    tag, path = options.get("tag"), options.get("path")
    if tag is None and path is None:
        raise ValueError("say which tag: option('tag', 'lab/temp'), or option('path', DIR) of a recording")
    if tag is not None:
        check_pattern(tag)
    limit = options.get("maxMessagesPerTrigger")
    return ReadOptions(
        tag=tag,
        path=path,
        live=tag is not None and _flag(options, "live", True),
        socket=options.get("socket"),
        starting=starting(options.get("startingOffsets", "latest" if streaming and path is None else "earliest")),
        fail_on_data_loss=_flag(options, "failOnDataLoss", True),
        max_messages=None if limit is None else _count("maxMessagesPerTrigger", limit),
        every=_count("every", options.get("every", "1")),
        decode=_flag(options, "decode", True),
        rows_per_partition=_count("rowsPerPartition", options.get("rowsPerPartition", "500000")),
        arrow=_flag(options, "arrow", True),
        streams=tuple(filter(None, options.get("streams", "").split(","))),
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises ValueError, BadTagName."""
    known = {
        "tag", "socket", "codec", "stateLocation", "checkpointLocation", "depth", "capacityBytes", "queryName",
        "queryId", "batchId",
    }  # fmt: skip
    _check_known(options, known)
    tag = options.get("tag") or options.get("path")
    if tag is None:
        raise ValueError("say on which tag to publish: option('tag', 'sar/detections')")
    depth, capacity = options.get("depth"), options.get("capacityBytes")
    query, batch = options.get("queryId"), options.get("batchId")
    if (query is None) != (batch is None):
        raise ValueError("a batch that is published once has both: option('queryId', NAME) and option('batchId', N)")
    if batch is not None and not batch.isdigit():
        raise ValueError(f"batchId is a whole number, not {batch!r}")
    return WriteOptions(
        tag=check_name(tag),
        socket=options.get("socket"),
        codec=options.get("codec"),
        state=options.get("stateLocation") or options.get("checkpointLocation"),
        depth=None if depth is None else _count("depth", depth),
        capacity_bytes=None if capacity is None else _count("capacityBytes", capacity),
        batch=None if query is None or batch is None else (query, int(batch)),
    )


def starting(text: str) -> Starting:
    """`earliest`, `latest`, a number, `{"incarnation": number}`, or a time. Raises ValueError."""
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]
    if text.isdigit():
        return int(text)
    if text.lstrip().startswith("{"):
        try:
            found: Any = json.loads(text)
        except ValueError as exc:
            raise ValueError(f"startingOffsets is no JSON object: {exc}") from exc
        if all(isinstance(value, int) and value >= 0 for value in found.values()):
            return {str(key).lower().removeprefix("0x").zfill(16): value for key, value in found.items()}
        raise ValueError("startingOffsets maps incarnations to sequence numbers, as {'00c0ffee00c0ffee': 17}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"startingOffsets is 'earliest', 'latest', a sequence number, a JSON object of them by incarnation, or a "
            f"time as 2026-01-31T12:00:00Z, not {text!r}"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Time(round(moment.timestamp() * 1_000_000) * 1000)


def _check_known(options: Mapping[str, str], known: set[str]) -> None:
    lower = {name.lower() for name in known}
    unknown = sorted(name for name in options if name.lower() not in lower)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; the format 'ringcast' takes {', '.join(sorted(known))}")


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def _count(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{name} is a whole number from 1 on, not {text!r}")
    return int(text)
