"""A distribution tag as a session holds it. What a tag is as a value, is in `ringcast.model.tag`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from ringcast.asking import DEFAULT_TIMEOUT_S, Asker
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Decoders, Undecoded, bind, only_scaling, scaled, scaling
from ringcast.client.mesh import administration
from ringcast.client.mesh.pulls import check_pulls, declare_pulls
from ringcast.client.mesh.views import open_view
from ringcast.client.remote_history import RemoteHistory
from ringcast.client.ring_following import Scaling, check_reliable
from ringcast.client.rings.local_history import LocalHistory
from ringcast.client.rings.profiles import named
from ringcast.codec import Codec
from ringcast.control.answers import PublisherListing, SubscriberListing, TagOpened
from ringcast.control.requests import ListHistories, ListPublishers, ListSubscribers, OpenTag
from ringcast.control.status import PublisherStatus, SubscriberStatus
from ringcast.history import History, Whose, incarnation_of
from ringcast.message import T
from ringcast.model.declared import OnExcess, declared
from ringcast.model.options import Start
from ringcast.model.place import AUTO
from ringcast.model.policy import EveryCycle, Policy, view
from ringcast.model.profile import Profile
from ringcast.model.tag import TagAttributes, check_name
from ringcast.notify import OnError
from ringcast.publisher import Publisher
from ringcast.scaling import Size, check_size
from ringcast.scaling.fidelity import RateWish, SizeWish, wish
from ringcast.serving import Server
from ringcast.subscriber import Subscriber
from ringcast.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Tag(Generic[T]):
    """Made by `session.tag(name)`. `Tag[T]` carries values of type T. Many handles of one tag may exist; what they give
    is independent of them."""

    def __init__(self, attachment: Attachment, opened: TagOpened, schema: object) -> None:
        self._attachment = attachment
        self._name = opened.name
        self._id = opened.tag_id
        self._attributes = opened.attributes
        self._codec = bind(opened.attributes, schema)
        self._asker: Asker[T] | None = None
        self._making = threading.Lock()
        attachment.registry.opened(self)

    @property
    def attachment(self) -> Attachment:
        return self._attachment

    @property
    def name(self) -> str:
        return self._name

    @property
    def id(self) -> int:
        """The tag's number, the same on every node."""
        return self._id

    @property
    def attributes(self) -> TagAttributes:
        """What the tag's users have agreed on."""
        return self._attributes

    @property
    def codec(self) -> Codec:
        return self._codec

    @overload
    def publisher(  # type: ignore[overload-overlap]
        self: Tag[bytes], on_slow: Literal["raise", "skip"] = "raise", *, encoded: bool = False,
        period_s: float | None = None, max_bytes: int | None = None, compute_s: float = 0.0,
        jitter_s: float | None = None, on_excess: OnExcess = "drop", profile: str | Profile | None = None,
    ) -> Publisher[Buffer]: ...  # fmt: skip
    @overload
    def publisher(
        self, on_slow: Literal["raise", "skip"] = "raise", *, encoded: Literal[False] = False,
        period_s: float | None = None, max_bytes: int | None = None, compute_s: float = 0.0,
        jitter_s: float | None = None, on_excess: OnExcess = "drop", profile: str | Profile | None = None,
    ) -> Publisher[T]: ...  # fmt: skip
    @overload
    def publisher(
        self, on_slow: Literal["raise", "skip"] = "raise", *, encoded: bool,
        period_s: float | None = None, max_bytes: int | None = None, compute_s: float = 0.0,
        jitter_s: float | None = None, on_excess: OnExcess = "drop", profile: str | Profile | None = None,
    ) -> Publisher[object]: ...  # fmt: skip
    def publisher(
        self, on_slow: Literal["raise", "skip"] = "raise", *, encoded: bool = False, period_s: float | None = None,
        max_bytes: int | None = None, compute_s: float = 0.0, jitter_s: float | None = None,
        on_excess: OnExcess = "drop", profile: str | Profile | None = None,
    ) -> Publisher[T] | Publisher[Buffer] | Publisher[object]:  # fmt: skip
        """Make a ring and register it, so that subscribers find it.

        `on_slow` says what `send` does when a reliable reader made no room within the tag's `max_wait_s`: raise
        SlowSubscriber, or send all the same and let that reader lose. `encoded`: what is sent are bytes that the tag's
        codec has written already, as in a recording; nothing is encoded or checked then.
        `period_s` and `max_bytes` declare the stream: at most one message of that size in every period, each up to
        `jitter_s` early (a tenth of the period), after computing for `compute_s`. The daemon lets it in or refuses
        it by the deadlines of all (docs/admission.md). What is more than declared is dropped (`send` returns -1) or,
        with `on_excess="wait"`, waits; both are counted and logged. `profile` ("sensor", "control",
        "video", "bulk" or one of your own) is what this publisher offers to subscribers with a profile.
        Raises DaemonUnavailable, UnknownTag (destroyed meanwhile), NoSpace (the node's memory budget), ResourceLimit,
        AdmissionRefused, ClosedError, ForkedError, ValueError.
        """
        said = declared(period_s, max_bytes, compute_s, jitter_s)
        offered = None if profile is None else named(profile)
        made: Publisher[T] = Publisher(self._attachment, self, on_slow, encoded, said, on_excess, offered)
        return made

    def subscribe(
        self,
        start: Start = "new",
        reliable: bool = False,
        busy_poll: bool = False,
        *,
        every: int = 1,
        rate_hz: RateWish | None = None,
        size: SizeWish | None = None,
        at: str = AUTO,
        transport: str = "",
        ordered: bool = True,
        priority: str = "",
        policy: Policy | None = None,
        deadline_s: float | None = None,
        profile: str | Profile | None = None,
    ) -> Subscriber[T]:
        """Receive from every publisher of the tag: those that are there are attached on return, later ones as they
        come.

        `start` is what is received first of rings that are there already: "new" (sent from now on), "latest" (the
        newest and what follows), "earliest" (all that is held) or a sequence number. Rings of publishers that come
        later are read from their first message. `reliable`: publishers wait for this reader, up to the tag's
        `max_wait_s`, and nothing is lost while both processes and the daemons between them live; after a daemon's death
        the stream goes on from the publisher's ring, and what that no longer has is in `lost`. `busy_poll`: burn a core
        instead of sleeping.
        `every` n receives the messages whose number is a multiple of n; scaling is not loss. `rate_hz` chooses n for
        each publisher, and anew when its rate changes, so that on average at most so many come in a second. `size`
        (width, height) receives images and arrays at that size, by area averaging; audio as (samples per second,
        channels). A range, `rate_hz=(2, 30)` or `size=((160, 120), (640, 480))`, gets the best of it that fits, by what
        links, processors and admission allow, and more when there is more: `fidelity`, `on_fidelity`
        (docs/admission.md). `at` is where all that happens: "publisher" (in its own process, for `size`), "subscriber",
        "node:NAME" for a node in between, or "auto" (where the tag says, else where it costs least: the node that keeps
        the tag decides, and again when rates, subscribers or nodes change; docs/placement.md). A publisher on this very
        node is read here, whatever node is named: no stream leaves a node to come back, and a warning says so.
        Every message keeps its number and times. `transport` carries them: where neither this nor the tag says it is
        "nak", or "tcp" for reliable delivery. Both can be changed later: `Subscriber.move`, `ringcast set`.
        `ordered=False`: a message may be received before those that are missing, where the transport recovers losses
        without asking for them ("lateral", "parity", "multicast" alone); others go on delivering in order. `lost` then
        counts what was given up since the message before, wherever it would have been. Not with `reliable`.
        `priority`: how urgently other nodes send it here: a class ("high"), a DSCP, a schedule for its threads, or
        several ("critical fifo:30"; docs/priorities.md); `Subscriber.prioritise` changes it.
        `policy`: Periodic(...) or OnChange(...), applied by a proxy at `at` (docs/variables.md). What comes is a stream
        of the proxy's own, with its numbers; event times are the publisher's, and a repeated message is marked
        `discardable`. Not with `every`, `rate_hz`, `size` or `deadline_s`.
        `deadline_s`: messages of declared publishers are to be here that soon after their periods begin; what cannot be
        promised is refused with the numbers (docs/admission.md). `profile` says how it receives where nothing else does
        (reliable, ordered, transport, priority), and is compared with what publishers offer: QosMismatch names both
        sides and the nearest profile that fits.
        Raises DaemonUnavailable, AdmissionRefused, QosMismatch (the tag refuses reliable readers, or has no room for
        more; no scaler understands its codec), ScaleError (what its schema says cannot be scaled), ResourceLimit,
        ClosedError, ForkedError, ValueError.
        """
        best_hz, best_size, span = wish(rate_hz, size)
        requested = None if profile is None else named(profile)
        if requested is not None:
            reliable = reliable or requested.reliable
            ordered, transport = ordered and requested.ordered, transport or requested.transport
            priority = priority or requested.urgency
        if reliable:
            check_reliable(self._name, self._attributes)
        options = Scaling(
            every, at, transport, best_size, best_hz, ordered, priority, deadline_s, requested, span
        ).check()  # fmt: skip
        if policy is not None and policy != EveryCycle():
            return self._under(policy, start, reliable, busy_poll, options)
        if best_size is not None:
            scaled(self._attributes, best_size)
        return Subscriber(
            self._attachment, self._name, self._decoders(best_size), start=start, reliable=reliable,
            busy_poll=busy_poll, scaling=options, tag=self,
        )  # fmt: skip

    def _under(
        self, policy: Policy, start: Start, reliable: bool, busy_poll: bool, options: Scaling
    ) -> Subscriber[T]:  # fmt: skip
        if options.every != 1 or options.rate_hz is not None or options.size is not None:
            raise ValueError("a policy says which messages come: leave every, rate_hz and size out")
        if options.deadline_s is not None:
            raise ValueError("a proxy sends when its policy says so, and no deadline can be promised: leave one out")
        node = self._attachment.connection.welcome.node
        wanted = view(self._name, policy, (), options.at, node, self._attributes.at)
        shown: Tag[T] = Tag(self._attachment, open_view(self._attachment, wanted, self._attributes), None)
        return shown.subscribe(
            start, reliable, busy_poll, transport=options.transport, ordered=options.ordered,
            priority=options.priority, profile=options.requested,
        )  # fmt: skip

    def history(
        self,
        depth: int | None = None,
        publisher: Whose | None = None,
        *,
        at: str | None = None,
        every: int = 1,
        size: Size | None = None,
        encoded: bool = False,
        period_s: float | None = None,
        max_age_s: float | None = None,
    ) -> History[T]:
        """Look into the rings of this tag. `depth` shows only so many of the newest of each publisher; `publisher`
        shows one publisher's only (one of `publishers(left=True)`, say); `every` n shows the messages
        whose number is a multiple of n; `size` shows them at that size, as `subscribe` does.

        `at` is where: "publisher" (at the publishers' nodes), "subscriber" (this node) or "node:NAME". Left out it is
        "publisher"; if there is no publisher on another node then, rings are read without asking anybody, and only
        publishers of this node are followed later. At the subscriber or on a named node there is what came there for
        subscriptions, and with `depth` a buffer of that many messages is held there for this history: deeper or
        shallower than the publisher's ring, and there when the publisher has left. `encoded`: messages have the bytes
        that the tag's codec wrote.
        `period_s` declares that it pulls at most so often, and `max_age_s` how old the newest message may be that it
        gets of declared publishers: what cannot be promised is refused with the numbers (docs/admission.md).
        Raises AdmissionRefused, BrokenError (the node is not there), DaemonUnavailable, QosMismatch (no scaler
        understands the tag's codec), ScaleError, ResourceLimit, ClosedError, ForkedError, ValueError, TypeError.
        """
        check_pulls(period_s, max_age_s)
        made = self._history(depth, publisher, at, every, size, encoded)
        if period_s is not None:
            try:
                where = at or "publisher"
                made.declared = declare_pulls(self._attachment, made, self._name, where, period_s, max_age_s)
            except BaseException:
                made.close()
                raise
        return made

    def _history(
        self, depth: int | None, publisher: Whose | None, at: str | None, every: int, size: Size | None, encoded: bool
    ) -> LocalHistory[T] | RemoteHistory[T]:
        incarnation = 0 if publisher is None else incarnation_of(publisher)
        if at in (None, "publisher") and every == 1:
            node = self._attachment.connection.welcome.node
            nodes = {row.info.incarnation: row.info.node for row in self.publishers(left=True)}
            if nodes.get(incarnation) == node or (at is None and all(owner == node for owner in nodes.values())):
                return self.local_history(depth, publisher, size, encoded)
        decode, scale = None if encoded else self._codec.decode, None
        if size is not None and encoded:
            scaled(self._attributes, check_size(size))
            scale = only_scaling(self._attributes, size)
        elif size is not None:
            decode = bind(scaled(self._attributes, check_size(size))).decode
            scale = scaling(self._attributes, size)
        found: RemoteHistory[T] = RemoteHistory(
            self._attachment, self, decode, scale, at=at or "publisher", depth=depth, every=every, size=size,
            incarnation=incarnation,
        )  # fmt: skip
        return found

    def local_history(
        self,
        depth: int | None = None,
        publisher: Whose | None = None,
        size: Size | None = None,
        encoded: bool = False,
    ) -> LocalHistory[T]:
        """The same for publishers of this node only, whoever publishes elsewhere: no other node is ever asked.

        Raises DaemonUnavailable, ResourceLimit, ClosedError, ForkedError, ValueError, TypeError.
        """
        if size is not None:
            scaled(self._attributes, check_size(size))
        incarnation = None if publisher is None else incarnation_of(publisher)
        decoders = Undecoded(size=size) if encoded else self._decoders(size)
        return LocalHistory(self._attachment, self, decoders, depth=depth, incarnation=incarnation)

    @overload
    def undecoded(self, publisher: Whose | None = None, *, remote: Literal[False] = False) -> LocalHistory[bytes]: ...
    @overload
    def undecoded(self, publisher: Whose | None = None, *, remote: Literal[True]) -> RemoteHistory[bytes]: ...
    def undecoded(
        self, publisher: Whose | None = None, *, remote: bool = False
    ) -> LocalHistory[bytes] | RemoteHistory[bytes]:
        """Look into rings for bytes as they were sent: those of this node, or with `remote` one publisher's elsewhere.

        Raises DaemonUnavailable, ResourceLimit, ClosedError, ForkedError, TypeError.
        """
        incarnation = None if publisher is None else incarnation_of(publisher)
        if not remote:
            return LocalHistory(self._attachment, self, Undecoded(), incarnation=incarnation)
        return RemoteHistory(self._attachment, self, None, at="publisher", incarnation=incarnation or 0)

    def publishers(self, left: bool = False, local: bool = False) -> list[PublisherStatus]:
        """Who publishes, on whichever node; of publishers on other nodes the counters are empty. With `left`, also
        those that left a ring behind (`alive` is False). With `local`, what this node has: its publishers, and the
        streams that come here from others, all with counters.

        Raises DaemonUnavailable, ClosedError, ForkedError.
        """
        what = ListPublishers(id=0, tag=self._name) if local else ListHistories(id=0, tag=self._name)
        pages = self._attachment.connection.call_pages(what, PublisherListing)
        return [row for page in pages for row in page.rows if left or row.alive]

    def subscribers(self, local: bool = False) -> list[SubscriberStatus]:
        """Who receives this tag, on whichever node and wildcards included; of subscribers on other nodes the counters
        are empty. With `local`, those of this node only.

        Raises DaemonUnavailable, ClosedError, ForkedError.
        """
        pages = self._attachment.connection.call_pages(
            ListSubscribers(id=0, tag=self._name, local=local), SubscriberListing
        )
        return [row for page in pages for row in page.rows]

    # ---------------------------------------------------------------- commands and queries

    def serve(self, function: Callable[[T], Any], on_error: OnError | None = None) -> Server[T]:
        """Answer what others ask on this tag: `function(data)` is called for each question, one after the other on a
        thread of its own, and what it returns is the answer, in the tag's codec; None is an answer too. What it raises
        is raised where it was asked, as AskFailed, and given to `on_error(error, message)`.

        A tag has one server, on whichever node. Raises AlreadyServed, DaemonUnavailable, NoSpace, ResourceLimit,
        ClosedError, ForkedError.
        """
        self._attachment.check()
        return self._attachment.employs(Server(self._attachment, self, function, on_error))

    def ask(self, data: T, timeout: float | None = DEFAULT_TIMEOUT_S) -> Any:
        """What the server of this tag answers. Any number of threads may ask; each gets its own answer. While nobody
        serves the tag, `timeout` is how long a server is waited for.

        Raises AskFailed (the server's function raised), ServerGone (it went away before it answered), NobodyServes,
        TimeoutError, EncodeError, DecodeError, MessageTooLarge, ResourceLimit, DaemonUnavailable, ClosedError,
        ForkedError.
        """
        asker = self._asker
        if asker is None or asker.closed:
            asker = self.asker()
        return asker.ask(data, timeout)

    def asker(self) -> Asker[T]:
        """What `ask` uses; made once. Raises as `publisher` and `subscribe` do."""
        if self._asker is None or self._asker.closed:
            self._attachment.check()
            with self._making:
                if self._asker is None or self._asker.closed:
                    self._asker = Asker(self._attachment, self)
        return self._asker

    def beside(self, name: str, depth: int) -> Tag[bytes]:
        """A tag for the questions or the answers of this one. Raises as `session.tag` does."""
        requested = {"codec": "bytes", "depth": depth, "capacity_bytes": self._attributes.capacity_bytes}
        if self._attributes.transport:
            requested["transport"] = self._attributes.transport
        opened = self._attachment.connection.call(OpenTag(id=0, name=check_name(name), requested=requested), TagOpened)
        return Tag(self._attachment, opened, None)

    def watch(self) -> Watch:
        """Be told which publishers and subscribers of this tag, on whichever node and wildcards included, come and go.

        Raises DaemonUnavailable, ResourceLimit, ClosedError, ForkedError.
        """
        return Watch(self._attachment, self._name, ("publisher", "subscriber"))

    def destroy(self, force: bool = False) -> None:
        """Remove the tag from the table. With `force`, whoever holds a right on it gets TagDestroyed.

        Raises TagInUse (others hold rights), UnknownTag, DaemonUnavailable, ClosedError, ForkedError.
        """
        administration.destroy_tag(self._attachment, self._name, force)

    def _decoders(self, size: Size | None) -> Decoders:
        return Decoders((self._name, self._attributes, self._codec), size)

    def __repr__(self) -> str:
        return f"<Tag {self._name!r} of {self._attributes.codec}>"
