"""A session: a program's place at its node's daemon, and the door to everything else.

Thread-safe. Whatever it gives out is closed with it; closing happens at the latest when the interpreter exits. Must
not know how any of it works: see `ringcast.client.attachment`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from ringcast.client.attachment import Attachment
from ringcast.client.connection_callback import ConnectionCallback
from ringcast.client.decoding import Decoders, scaled
from ringcast.client.mesh import administration
from ringcast.client.mesh.administering import Administers
from ringcast.client.ring_following import Scaling
from ringcast.client.rings.profiles import named
from ringcast.client.starting import ensure_running
from ringcast.codec import find
from ringcast.control.answers import Done, SettingListing, Status, TagListing, TagOpened
from ringcast.control.limits import MAX_LABEL_CHARS
from ringcast.control.requests import GetSettings, GetStatus, ListTags, OpenTag, ReportRefusal
from ringcast.control.socket_path import check_directory, default_socket_path
from ringcast.control.status import SettingStatus, TagStatus
from ringcast.errors import DaemonUnavailable, ForeignDaemon
from ringcast.model.closing import Closing
from ringcast.model.connection import ConnectionChange
from ringcast.model.identity import PresenceKind
from ringcast.model.options import PublisherOptions, Start, SubscribeOptions, TagOptions
from ringcast.model.place import AUTO
from ringcast.model.policy import Policy
from ringcast.model.profile import Profile
from ringcast.model.tag import TagAttributes, check_name, check_pattern, is_pattern
from ringcast.notify import OnError
from ringcast.publisher import Publisher
from ringcast.scaling.fidelity import RateWish, SizeWish, wish
from ringcast.subscriber import Subscriber
from ringcast.tag import Tag
from ringcast.variables.opening import OpensVariables
from ringcast.watch import Watch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ringcast.codec.audio import AudioBlock

_START_ATTEMPTS = 3
S = TypeVar("S")


class _NotNamed:
    """Stands for an attribute that the caller left out, which is not the same as one with the default's value."""

    def __repr__(self) -> str:
        return "<as it is>"


NOT_NAMED: Any = _NotNamed()


def connect(socket: str | os.PathLike[str] | None = None, start: bool = True, program: str | None = None) -> Session:
    """Open a session with this node's daemon.

    `socket` is where it listens (default: RINGCAST_SOCKET, or the user's runtime directory). With `start`, a daemon is
    started when none runs: as a process of its own, shared by all programs of this user, ending after the last of
    them. `program` is the name under which others see this one.
    The daemon must be of this user or of root, and the default socket's directory this user's alone.
    Raises DaemonUnavailable, ForeignDaemon, ResourceLimit.
    """
    path = os.path.abspath(socket) if socket is not None else default_socket_path()
    name = program if program is not None else os.path.basename(sys.argv[0] if sys.argv else "") or "python"
    check_directory(path)
    for attempt in range(_START_ATTEMPTS):
        try:
            return Session(Attachment(path, name))
        except ForeignDaemon:
            raise
        except DaemonUnavailable:
            # A daemon that was about to end may have been reached on its last breath; then once more.
            if not start or attempt == _START_ATTEMPTS - 1:
                raise
        ensure_running(path)
    raise AssertionError("unreachable")


class Session(Closing, Administers, OpensVariables):
    """Made by `ringcast.connect()`; use it with `with` or `async with`, or call `close`."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    @property
    def node(self) -> str:
        """This node's name."""
        return self._attachment.connection.welcome.node

    @property
    def socket_path(self) -> str:
        return self._attachment.connection.path

    @property
    def connected(self) -> bool:
        """False while the daemon is away. What is open goes on working, and the session attaches again by itself."""
        return self._attachment.connection.connected

    def on_connection_change(
        self, callback: Callable[[ConnectionChange], object], on_error: OnError | None = None
    ) -> ConnectionCallback:
        """Call `callback` with a ConnectionChange, on a thread of its own: at once with how it is ("connected" or
        "lost"), then whenever the daemon goes away ("lost") and was found again ("back"). Closing the session ends it
        and calls nothing. An exception in the callback is logged, counted in `failed` and given to `on_error(error,
        change)`.

        Raises ClosedError, ForkedError.
        """
        self._attachment.check()
        return self._attachment.employs(ConnectionCallback(self._attachment.connection, callback, on_error))

    def drain(self, timeout: float | None = None) -> None:
        """`drain` of every publisher that this session has open: wait until reliable readers are through with what was
        sent. Raises TimeoutError, ClosedError, ForkedError, TagDestroyed."""
        self._attachment.drain(timeout)

    @property
    def closed(self) -> bool:
        return self._attachment.closed

    # ---------------------------------------------------------------- tags

    @overload
    def tag(
        self, name: str, *, codec: str = ..., schema: type[S], create: bool = True, **options: Unpack[TagOptions]
    ) -> Tag[S]: ...
    @overload
    def tag(
        self, name: str, *, codec: Literal["bytes"], create: bool = True, **options: Unpack[TagOptions]
    ) -> Tag[bytes]: ...
    @overload
    def tag(
        self,
        name: str,
        *,
        codec: Literal["numpy", "image"],
        schema: Mapping[str, object] | None = ...,
        create: bool = True,
        **options: Unpack[TagOptions],
    ) -> Tag[NDArray[np.generic]]: ...
    @overload
    def tag(
        self,
        name: str,
        *,
        codec: Literal["audio"],
        schema: Mapping[str, object] | None = ...,
        create: bool = True,
        **options: Unpack[TagOptions],
    ) -> Tag[AudioBlock]: ...
    @overload
    def tag(
        self, name: str, *, codec: str = ..., schema: object = ..., create: bool = True, **options: Unpack[TagOptions]
    ) -> Tag[object]: ...
    def tag(
        self,
        name: str,
        *,
        codec: str = NOT_NAMED,
        schema: object = NOT_NAMED,
        depth: int = NOT_NAMED,
        capacity_bytes: int = NOT_NAMED,
        max_wait_s: float = NOT_NAMED,
        prefault: bool = NOT_NAMED,
        at: str = NOT_NAMED,
        transport: str = NOT_NAMED,
        priority: str = NOT_NAMED,
        create: bool = True,
    ) -> Tag[Any]:
        """Create the tag, or join it as it is. An attribute left out is taken as it is, or from the default when the
        tag is created; one that is named must agree.

        `codec`: "bytes" (default), "json", "msgpack", "numpy", "image", "audio" or an installed one. `schema`: for json
        and msgpack a type (msgspec.Struct, dataclass, TypedDict) or JSON schema, for numpy `{"dtype": ..., "shape":
        [...]}`, for images `{"format": "png"}`; given as a type, messages are decoded into it. Type checkers know the
        messages' type by the schema's type, or by the codec that is named.
        `depth` and `capacity_bytes`: how many messages and bytes a publisher's ring holds. `max_wait_s`: how
        long a publisher waits for reliable readers; 0 refuses them. `prefault`, commit all memory at once. `at`, where
        subscribers' proxies sit, `transport`, what carries the tag between nodes, and `priority`, how urgently
        ("high fifo:30"; docs/priorities.md), for those who say nothing of it.
        A tag that nobody uses (no publisher, no ring of one that left, no subscriber by name) ends after the daemon's
        lease, a day unless `ringcast daemon --tag-lease` says otherwise; then call this again. Raises BadTagName,
        TagConflict, UnknownTag (`create=False`), CodecError, QosMismatch (a value out of range),
        TypeError, DaemonUnavailable, ClosedError, ForkedError.
        """
        check_name(name)
        self._attachment.check()
        named = {
            "codec": codec, "depth": depth, "capacity_bytes": capacity_bytes, "max_wait_s": max_wait_s,
            "prefault": prefault, "at": at, "transport": transport, "priority": priority,
        }  # fmt: skip
        requested = {key: value for key, value in named.items() if value is not NOT_NAMED}
        given = None if schema is NOT_NAMED else schema
        if schema is not NOT_NAMED:
            requested["schema"] = None if schema is None else find(self._codec_of(name, codec)).describe(schema)
        elif codec is not NOT_NAMED:
            find(codec)
        opened = self._attachment.connection.call(
            OpenTag(id=0, name=name, requested=requested, create=create), TagOpened
        )
        return Tag(self._attachment, opened, given)

    def tags(self, pattern: str = "**") -> list[TagStatus]:
        """The tags that match, with counters. Raises BadTagName, DaemonUnavailable, ClosedError, ForkedError."""
        return self._list(ListTags(id=0, pattern=check_pattern(pattern)))

    def local_tags(self) -> list[TagStatus]:
        """The tags that somebody on this node created or uses. Raises DaemonUnavailable, ClosedError, ForkedError."""
        return self._list(ListTags(id=0, local=True))

    def destroy_tag(self, name: str, *, force: bool = False) -> None:
        """`Tag.destroy` for whoever has not the tag's codec. Raises as that does, and BadTagName."""
        administration.destroy_tag(self._attachment, check_name(name), force)

    # ---------------------------------------------------------------- shortcuts

    @overload
    def publisher(
        self, name: str, *, codec: str = ..., schema: type[S], **options: Unpack[PublisherOptions]
    ) -> Publisher[S]: ...
    @overload
    def publisher(  # type: ignore[overload-overlap]
        self, name: str, *, codec: Literal["bytes"], **options: Unpack[PublisherOptions]
    ) -> Publisher[Buffer]: ...
    @overload
    def publisher(  # type: ignore[overload-overlap]
        self, name: str, *, codec: Literal["numpy", "image"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[PublisherOptions],
    ) -> Publisher[NDArray[np.generic]]: ...  # fmt: skip
    @overload
    def publisher(
        self, name: str, *, codec: str = ..., schema: object = ..., **options: Unpack[PublisherOptions]
    ) -> Publisher[object]: ...
    def publisher(self, name: str, *, on_slow: Literal["raise", "skip"] = "raise", **attributes: Any) -> Publisher[Any]:
        """`tag(name, **attributes).publisher(on_slow)`. Raises as those two do."""
        tag: Tag[object] = self.tag(name, **attributes)
        return tag.publisher(on_slow)

    @overload
    def subscribe(
        self, pattern: str, *, codec: str = ..., schema: type[S], **options: Unpack[SubscribeOptions]
    ) -> Subscriber[S]: ...
    @overload
    def subscribe(
        self, pattern: str, *, codec: Literal["bytes"], **options: Unpack[SubscribeOptions]
    ) -> Subscriber[bytes]: ...
    @overload
    def subscribe(
        self, pattern: str, *, codec: Literal["numpy", "image"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[SubscribeOptions],
    ) -> Subscriber[NDArray[np.generic]]: ...  # fmt: skip
    @overload
    def subscribe(
        self, pattern: str, *, codec: Literal["audio"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[SubscribeOptions],
    ) -> Subscriber[AudioBlock]: ...  # fmt: skip
    @overload
    def subscribe(
        self, pattern: str, *, codec: str = ..., schema: object = ..., **options: Unpack[SubscribeOptions]
    ) -> Subscriber[object]: ...
    def subscribe(
        self,
        pattern: str,
        *,
        start: Start = "new",
        reliable: bool = False,
        busy_poll: bool = False,
        every: int = 1,
        rate_hz: RateWish | None = None,
        size: SizeWish | None = None,
        at: str = AUTO,
        transport: str = "",
        ordered: bool = True,
        priority: str = "",
        policy: Policy | None = None,
        only_best: bool = False,
        deadline_s: float | None = None,
        profile: str | Profile | None = None,
        **attributes: Any,
    ) -> Subscriber[Any]:
        """`tag(name, **attributes).subscribe(...)`, or, with `*` for one segment and `**` for any number of them, a
        subscription to every tag that matches, now or later. Each message says its `tag`, and has its codec. With
        `size`, all that match must have a codec that can be scaled; one that comes later and has not ends the
        subscription with QosMismatch. `only_best`: of the tags that match, only the one whose stream has the highest
        fidelity is received, and a better one from when a message comes on it (docs/admission.md). Raises as `tag` and
        `Tag.subscribe` do; TypeError for more beside a wildcard.
        """
        if only_best and (reliable or not is_pattern(pattern)):
            raise ValueError("only_best is for a wildcard, and not with reliable=True: what it leaves is left out")
        if not is_pattern(pattern):
            tag: Tag[object] = self.tag(pattern, **attributes)
            return tag.subscribe(
                start, reliable, busy_poll, every=every, rate_hz=rate_hz, size=size, at=at, transport=transport,
                ordered=ordered, priority=priority, policy=policy, deadline_s=deadline_s, profile=profile,
            )  # fmt: skip
        if attributes := {**attributes, **({} if policy is None else {"policy": policy})}:
            raise TypeError(f"a wildcard takes each tag as it is; leave out {', '.join(attributes)}")
        best_hz, best_size, span = wish(rate_hz, size)
        requested = None if profile is None else named(profile)
        if requested is not None:
            reliable, ordered = reliable or requested.reliable, ordered and requested.ordered
            transport, priority = transport or requested.transport, priority or requested.urgency
        options = Scaling(
            every, at, transport, best_size, best_hz, ordered, priority, deadline_s, requested, span, only_best
        ).check()
        if best_size is not None:
            for row in self.tags(pattern):
                scaled(row.attributes, best_size)
        return Subscriber(
            self._attachment, check_pattern(pattern), Decoders(size=best_size), start=start, reliable=reliable,
            busy_poll=busy_poll, scaling=options,
        )  # fmt: skip

    # ---------------------------------------------------------------- the network

    def watch(
        self, pattern: str = "**", *, kinds: Iterable[PresenceKind] = ("node", "publisher", "subscriber")
    ) -> Watch:
        """Be told which nodes, publishers and subscribers come and go: first of all that are there, then of changes.

        `pattern` chooses publishers by their tag, and subscribers by the tags that they could receive; `kinds` says
        what to watch. A node that cannot be reached went, and its publishers and subscribers with it.
        Raises BadTagName, ValueError, DaemonUnavailable, ResourceLimit, ClosedError, ForkedError.
        """
        return Watch(self._attachment, check_pattern(pattern), tuple(kinds))

    # ---------------------------------------------------------------- the daemon

    def status(self) -> Status:
        """What the daemon says of itself. Raises DaemonUnavailable, ClosedError, ForkedError."""
        return self._attachment.connection.call(GetStatus(id=0), Status)

    def settings(self) -> list[SettingStatus]:
        """The daemon's settings, and where each came from. Raises DaemonUnavailable, ClosedError, ForkedError."""
        call = self._attachment.connection.call_pages
        return [row for page in call(GetSettings(id=0), SettingListing) for row in page.rows]

    def report_refusal(self, who: str, action: str, what: str = "", reason: str = "", *, count: int = 1) -> None:
        """For programs that serve others, as the gateway does: have the daemon's audit record that `who` was refused an
        action, so many times. Raises DaemonUnavailable, ClosedError, ForkedError."""
        who, action, what, reason = (text[:MAX_LABEL_CHARS] for text in (who, action, what, reason))
        report = ReportRefusal(id=0, who=who, action=action, what=what, reason=reason, count=count)
        self._attachment.connection.call(report, Done)

    def close(self) -> None:
        """Close everything this session gave out and say goodbye. A second call does nothing, and so does one in a
        forked child."""
        self._attachment.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "connected" if self.connected else "daemon away"
        return f"<Session at {self.socket_path}: {state}>"

    def _codec_of(self, name: str, codec: str) -> str:
        """Which codec is to understand a schema: the one named beside it, else the tag's own."""
        if codec is not NOT_NAMED:
            return codec
        rows = self._list(ListTags(id=0, pattern=name))
        return rows[0].attributes.codec if rows else TagAttributes().codec

    def _list(self, request: ListTags) -> list[TagStatus]:
        pages = self._attachment.connection.call_pages(request, TagListing)
        return [row for page in pages for row in page.rows]
