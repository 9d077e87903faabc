"""Every exception Ringcast raises, and nothing else.

Names follow one rule: `ClosedError` means you closed it, `BrokenError` means the other side did. Each error
carries its facts as attributes, so a program never has to parse a sentence; the sentence says what happened,
what was expected and what to do. `recv` past its timeout raises the built-in `TimeoutError`.

Must not import anything else of Ringcast: the native core and every other module raise from here.
"""

from __future__ import annotations

from ringcast.errors.admission import AdmissionRefused
from ringcast.errors.asking import AlreadyServed, AskFailed, NobodyServes, ServerGone
from ringcast.errors.base import BrokenError, RingcastError
from ringcast.errors.recording import CheckpointMismatch, DataLoss, DiskFull, NoJava, RecordingError
from ringcast.errors.rights import NotAllowed
from ringcast.errors.time import ClocksDisagree

__all__ = [
    "AdmissionRefused", "AlreadyServed", "AskFailed", "BrokenError", "CheckpointMismatch", "ClocksDisagree",
    "DataLoss", "DiskFull", "NoJava", "NobodyServes", "NotAllowed", "RecordingError", "RingcastError", "ServerGone",
]  # fmt: skip


class ClosedError(RingcastError):
    """You closed this session, publisher, subscriber or history, and then used it."""

    def __init__(self, what: str = "object") -> None:
        self.what = what
        super().__init__(f"this {what} is closed; open a new one to go on")


class ForkedError(RingcastError):
    """This object was made before `os.fork` and belongs to the parent process."""

    def __init__(self, what: str = "session") -> None:
        self.what = what
        super().__init__(
            f"this {what} belongs to the parent process; call ringcast.connect() in the child, "
            "or start children with multiprocessing's 'spawn'"
        )


class BusyError(RingcastError):
    """Two threads used one subscriber at the same time."""

    def __init__(self, what: str = "subscriber") -> None:
        self.what = what
        super().__init__(
            f"another thread is receiving on this {what}; give each thread a {what} of its own (they share the ring)"
        )


class WouldBlock(RingcastError):
    """A `_nowait` call found nothing to do."""

    def __init__(self, what: str = "no message is waiting") -> None:
        super().__init__(what)


class DaemonUnavailable(BrokenError):
    """No daemon answers on the socket."""

    def __init__(self, socket_path: str, reason: str) -> None:
        self.socket_path = socket_path
        self.reason = reason
        super().__init__(
            f"no daemon answers at {socket_path} ({reason}); start one with 'ringcast daemon' "
            "and see 'ringcast doctor'. Rings already open go on working without it"
        )


class ForeignDaemon(DaemonUnavailable):
    """The process at the daemon's socket is another user's, and not root's: what is sent there, others may read."""

    def __init__(self, socket_path: str, uid: int, own_uid: int) -> None:
        super().__init__(socket_path, f"the process there is of user {uid}")
        self.uid = uid
        self.own_uid = own_uid
        said = (
            f"the daemon at {socket_path} is run by user {uid}, and not by user {own_uid} or root, so it is not talked "
            "to; use a socket of your own (--socket, RINGCAST_SOCKET), or have root run the daemon that users share"
        )
        self.args = (said,)


class DaemonRunning(RingcastError):
    """A second daemon was started on a socket that has one."""

    def __init__(self, socket_path: str, pid: int | None) -> None:
        self.socket_path = socket_path
        self.pid = pid
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"a daemon already runs on {socket_path} ({who}); stop it first, or give this one another place "
            "with --socket PATH"
        )


class NameTaken(BrokenError):
    """The daemon serves nobody: an older one in its mesh has the same name."""

    def __init__(self, node: str, address: str) -> None:
        self.node = node
        self.address = address
        super().__init__(
            f"this node's daemon is called {node!r} and so is an older one at {address}, so it serves nobody; start it "
            "with another name (ringcast daemon --name NAME), or stop the other, and it serves again"
        )


class PublisherGone(BrokenError):
    """A stream was asked of a node that does not have it."""

    def __init__(self, incarnation: int, node: str) -> None:
        self.incarnation = incarnation
        self.node = node
        super().__init__(f"publisher {incarnation:x} is not to be had on node {node}; see 'ringcast tags'")


class CorruptRing(BrokenError):
    """A ring's own writer damaged it; what was read could not be a message."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the publisher damaged its own ring ({detail}); other rings are not affected")


class BadMessage(RingcastError):
    """Bytes from a peer were not a control message."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"not a valid control message: {reason}")


class TagError(RingcastError):
    """Base of what can be wrong with a tag."""


class BadTagName(TagError):
    """A tag name or pattern that cannot be one."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(
            f"{name!r} is not a tag name: {reason} (good: 'lab/bench1/temp'; pattern: 'lab/*/temp', 'lab/**')"
        )


class UnknownTag(TagError):
    """`create=False`, and nobody created the tag."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no tag {name!r}; create it with session.tag({name!r}), or look at 'ringcast tags'")


class TagConflict(TagError):
    """The tag exists with other attributes."""

    def __init__(self, name: str, attribute: str, existing: object, requested: object) -> None:
        self.name = name
        self.attribute = attribute
        self.existing = existing
        self.requested = requested
        super().__init__(
            f"tag {name!r} exists with {attribute}={existing!r}, not {requested!r}; leave {attribute} out to join it "
            "as it is, or destroy the tag first"
        )


class TagInUse(TagError):
    """`destroy` on a tag on which others hold rights."""

    def __init__(self, name: str, publishers: int, subscribers: int) -> None:
        self.name = name
        self.publishers = publishers
        self.subscribers = subscribers
        super().__init__(
            f"tag {name!r} is held by {publishers} publisher(s) and {subscribers} subscriber(s); "
            "close them first, or destroy(force=True)"
        )


class TagDestroyed(TagError, BrokenError):
    """Somebody destroyed the tag with `force=True` while you held a right on it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"tag {name!r} was destroyed by another client; create it again to go on")


class QosMismatch(RingcastError):
    """What was asked for is more than what is offered."""

    def __init__(self, asked: str, offered: str, remedy: str) -> None:
        self.asked = asked
        self.offered = offered
        self.remedy = remedy
        super().__init__(f"asked for {asked}, but {offered}; {remedy}")


class MessageTooLarge(RingcastError):
    """The message does not fit the ring, or is longer than any message may be (`most_bytes`)."""

    def __init__(self, length: int, capacity_bytes: int, most_bytes: int | None = None) -> None:
        self.length = length
        self.capacity_bytes = capacity_bytes
        self.most_bytes = most_bytes
        if most_bytes is not None and length > most_bytes:
            why = f"is longer than any message may be ({most_bytes} bytes); send it in parts"
        else:
            why = f"does not fit a ring of {capacity_bytes}; create the tag with capacity_bytes of at least {length}"
        super().__init__(f"a message of {length} bytes {why}")


class SlowSubscriber(RingcastError):
    """A reliable reader did not make room within the tag's bound. Nothing was written.

    Sending again goes through at once: the slow reader is passed over, loses what it had not read, and sees it
    in `lost`. It is waited for again once it has caught up.
    """

    def __init__(self, waited_s: float, pids: tuple[int, ...]) -> None:
        self.waited_s = waited_s
        self.pids = pids
        readers = ", ".join(str(pid) for pid in pids) or "unknown"
        super().__init__(
            f"waited {waited_s:g} s for reliable reader(s) in process {readers}; nothing was written. Send again to "
            "pass them over, raise the tag's max_wait_s, or publish with on_slow='skip'"
        )


class ReservationError(RingcastError):
    """A reservation was used out of turn."""


class HistoryError(RingcastError):
    """The history does not hold what was pulled."""

    def __init__(
        self, text: str, *, seq: int | None = None, oldest: int | None = None, newest: int | None = None
    ) -> None:
        self.text = text
        self.seq = seq
        self.oldest = oldest
        self.newest = newest
        super().__init__(text)


class Empty(HistoryError):
    """Nothing was ever sent, or nobody publishes."""

    def __init__(self, text: str = "the history is empty: nothing has been sent yet") -> None:
        super().__init__(text)


class Overwritten(HistoryError):
    """It was there, and newer messages took its place."""

    def __init__(self, seq: int, oldest: int, newest: int) -> None:
        super().__init__(
            f"message {seq} is no longer held; the history holds {oldest} to {newest}. A larger depth or "
            "capacity_bytes on the tag keeps more",
            seq=seq, oldest=oldest, newest=newest,
        )  # fmt: skip


class NotYet(HistoryError):
    """It has not been sent."""

    def __init__(self, seq: int, newest: int) -> None:
        super().__init__(f"message {seq} has not been sent yet; the newest is {newest}", seq=seq, newest=newest)


class CodecError(RingcastError):
    """Base of what can be wrong between a value and its bytes."""

    def __init__(self, codec: str, reason: str) -> None:
        self.codec = codec
        self.reason = reason
        super().__init__(f"codec {codec!r}: {reason}")


class EncodeError(CodecError):
    """The value cannot be sent with this tag's codec or schema."""


class DecodeError(CodecError):
    """The bytes received are not what the tag's codec or schema says."""


class ScaleError(DecodeError):
    """The message cannot be scaled as asked."""

    @classmethod
    def of(cls, codec: str, error: Exception) -> ScaleError:
        """The same of a reason that has another class."""
        if isinstance(error, cls):
            return error
        return cls(codec, error.reason if isinstance(error, CodecError) else str(error))


class NoSpace(RingcastError):
    """The node's memory budget for rings is used up."""

    def __init__(self, wanted_bytes: int, free_bytes: int, budget_bytes: int) -> None:
        self.wanted_bytes = wanted_bytes
        self.free_bytes = free_bytes
        self.budget_bytes = budget_bytes
        super().__init__(
            f"a ring of {wanted_bytes} bytes does not fit: {free_bytes} of this node's budget of {budget_bytes} are "
            "free; use a smaller capacity_bytes, close publishers, or start the daemon with a larger --budget"
        )


class ResourceLimit(RingcastError):
    """The operating system refused a descriptor, a mapping or memory."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}; {remedy}")


class BadTransport(RingcastError):
    """The text that names a transport and its parameters cannot be read."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        super().__init__(f"{text!r} is no transport: {reason} (good: 'nak', 'lateral:r=4,c=3', 'lateral+nak:r=4,c=3')")


class BadConfiguration(RingcastError):
    """A configuration file cannot be used. `line` is 0 when the file as a whole is meant."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
