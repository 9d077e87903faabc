"""What can go wrong with recordings and with what Spark reads. Pure."""

from __future__ import annotations

from ringcast.errors.base import RingcastError


class RecordingError(RingcastError):
    """A recording cannot be written, or is not one."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"recording {path}: {reason}")


class DiskFull(RecordingError):
    """The disk is full. What was committed stays."""

    def __init__(self, path: str, committed: int) -> None:
        self.committed = committed
        super().__init__(
            path,
            f"the disk is full; the {committed} message(s) committed so far stay. Make room and record again with the "
            "same --out, which goes on after them",
        )


class DataLoss(RingcastError):
    """Messages were overwritten in a ring before they were read."""

    def __init__(self, tag: str, publisher: str, first: int, last: int, lost: int) -> None:
        self.tag = tag
        self.publisher = publisher
        self.first = first
        self.last = last
        self.lost = lost
        super().__init__(
            f"{lost} of the messages {first} to {last} that {publisher} sent on {tag!r} were overwritten before they "
            "were read; give the tag a larger depth or capacity_bytes, record it and add option('path', DIR), or go on "
            "without them with option('failOnDataLoss', 'false')"
        )


class CheckpointMismatch(RingcastError):
    """A query was started with the checkpoint of another one."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"this checkpoint belongs to a query that reads {found!r}, and this one reads {expected!r}; give each "
            "query a checkpointLocation of its own"
        )


class NoJava(RingcastError):
    """Spark needs a Java that is not there, or is too old."""

    def __init__(self, found: str, remedy: str) -> None:
        self.found = found
        self.remedy = remedy
        super().__init__(f"Spark needs Java 17 or newer and there is {found}; {remedy}")
