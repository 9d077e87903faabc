"""Ringcast: real-time push-pull messaging. One ring per publisher, a cursor per reader.

Begin with `ringcast.connect()`; `examples/first_program.py` is the shortest whole program.
"""

try:
    import ringcast._core  # noqa: F401
except ImportError as exc:
    raise ImportError(
        "Ringcast's native core is not built; run 'make setup' in the source tree, or 'pip install .'"
    ) from exc

from ringcast import errors
from ringcast.client.connection_callback import ConnectionCallback
from ringcast.codec import Codec, CodecKind
from ringcast.control.answers import Status
from ringcast.control.status import ChannelStatus, NodeStatus, PublisherStatus, SubscriberStatus, TagStatus
from ringcast.errors import (
    BadMessage,
    BadTagName,
    BrokenError,
    BusyError,
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
    NoSpace,
    NotYet,
    Overwritten,
    QosMismatch,
    ReservationError,
    ResourceLimit,
    RingcastError,
    ScaleError,
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
from ringcast.model.tag import TagAttributes
from ringcast.notify import ArrivalEvent, Blackboard, Callback, MessageQueue
from ringcast.publisher import Publisher
from ringcast.session import Session, connect
from ringcast.subscriber import Subscriber
from ringcast.tag import Tag
from ringcast.watch import Watch, WatchCallback

__all__ = [
    "ArrivalEvent", "BadMessage", "BadTagName", "Blackboard", "BrokenError", "BusyError", "Callback", "ChannelStatus",
    "ClosedError",
    "Codec", "CodecError", "CodecKind", "ConnectionCallback", "ConnectionChange", "CorruptRing",
    "DaemonRunning", "DaemonUnavailable", "DecodeError", "Empty",
    "EncodeError", "ForeignDaemon", "ForkedError", "History", "HistoryError", "Message", "MessageQueue",
    "MessageTooLarge", "NoSpace",
    "NameTaken", "NodeStatus", "NotYet", "Overwritten", "Presence", "Publisher", "PublisherInfo", "PublisherStatus",
    "QosMismatch",
    "Reservation", "ReservationError", "ResourceLimit", "RingcastError", "ScaleError", "Session", "SlowSubscriber",
    "Status",
    "Subscriber", "SubscriberInfo", "SubscriberStats", "SubscriberStatus", "Tag", "TagAttributes", "TagConflict",
    "TagDestroyed", "TagError", "TagInUse", "TagStatus", "UnknownTag", "Watch", "WatchCallback", "WouldBlock",
    "connect", "errors",
]  # fmt: skip
