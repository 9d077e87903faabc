"""Ringcast: real-time push-pull messaging. One ring per publisher, a cursor per reader.

Begin with `ringcast.connect()`; `examples/first_program.py` is the shortest whole program.
"""

try:
    import ringcast._core  # noqa: F401
except ImportError as exc:
    raise ImportError(
        "Ringcast's native core is not built; run 'make setup' in the source tree, or 'pip install .'"
    ) from exc

from typing import TYPE_CHECKING

from ringcast import errors
from ringcast.client.connection_callback import ConnectionCallback
from ringcast.codec import Codec, CodecKind
from ringcast.control.answers import Status
from ringcast.control.status import ChannelStatus, NodeStatus, PublisherStatus, SubscriberStatus, TagStatus
from ringcast.errors import (
    AdmissionRefused,
    AlreadyServed,
    AskFailed,
    BadMessage,
    BadTagName,
    BrokenError,
    BusyError,
    ClocksDisagree,
    ClosedError,
    CodecError,
    CorruptRing,
    DaemonRunning,
    DaemonUnavailable,
    DecodeError,
    Empty,
    EncodeError,
    ForeignDaemon,
    ForkedError,
    HistoryError,
    MessageTooLarge,
    NameTaken,
    NobodyServes,
    NoSpace,
    NotAllowed,
    NotYet,
    Overwritten,
    QosMismatch,
    ReservationError,
    ResourceLimit,
    RingcastError,
    ScaleError,
    ServerGone,
    SlowSubscriber,
    TagConflict,
    TagDestroyed,
    TagError,
    TagInUse,
    UnknownTag,
    WouldBlock,
)
from ringcast.history import History
from ringcast.measure.receiving import SubscriberStats
from ringcast.message import Message, Reservation
from ringcast.model.connection import ConnectionChange
from ringcast.model.identity import Presence, PublisherInfo, SubscriberInfo
from ringcast.model.policy import EveryCycle, OnChange, Periodic
from ringcast.model.tag import TagAttributes
from ringcast.notify import ArrivalEvent, Blackboard, Callback, MessageQueue
from ringcast.publisher import Publisher
from ringcast.scaling.fidelity import Fidelity
from ringcast.session import Session, connect
from ringcast.subscriber import Subscriber
from ringcast.tag import Tag
from ringcast.watch import Watch, WatchCallback

if TYPE_CHECKING:
    from ringcast.aio import (
        AsyncHistory,
        AsyncPublisher,
        AsyncSession,
        AsyncSubscriber,
        AsyncTag,
        AsyncWatch,
        connect_async,
    )


def __getattr__(name: str) -> object:
    """What is for asyncio is loaded when it is first named: most programs do without."""
    if name == "connect_async" or (name.startswith("Async") and name in __all__):
        from ringcast import aio

        return getattr(aio, name)
    raise AttributeError(f"module 'ringcast' has no attribute {name!r}")


__all__ = [
    "AdmissionRefused",
    "AlreadyServed", "ArrivalEvent", "AskFailed", "AsyncHistory", "AsyncPublisher", "AsyncSession", "AsyncSubscriber",
    "AsyncTag", "AsyncWatch", "BadMessage", "BadTagName", "Blackboard", "BrokenError", "BusyError", "Callback",
    "ChannelStatus", "ClocksDisagree", "ClosedError", "Codec", "CodecError", "CodecKind", "ConnectionCallback",
    "ConnectionChange", "CorruptRing", "DaemonRunning", "DaemonUnavailable", "DecodeError", "Empty", "EncodeError",
    "EveryCycle", "Fidelity", "ForeignDaemon", "ForkedError", "History", "HistoryError", "Message", "MessageQueue",
    "MessageTooLarge", "NameTaken", "NoSpace", "NobodyServes", "NodeStatus", "NotAllowed", "NotYet", "OnChange",
    "Overwritten", "Periodic", "Presence", "Publisher", "PublisherInfo", "PublisherStatus", "QosMismatch",
    "Reservation", "ReservationError", "ResourceLimit", "RingcastError", "ScaleError", "ServerGone", "Session",
    "SlowSubscriber", "Status", "Subscriber", "SubscriberInfo", "SubscriberStats", "SubscriberStatus", "Tag",
    "TagAttributes", "TagConflict", "TagDestroyed", "TagError", "TagInUse", "TagStatus", "UnknownTag", "Watch",
    "WatchCallback", "WouldBlock", "connect", "connect_async", "errors",
]  # fmt: skip
