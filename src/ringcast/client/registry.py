"""Everything a session holds at its daemon: open tags and rights. It turns notices into changes of those, and registers
them again with a daemon that was restarted.

No lock: rights enter and leave by single dictionary operations, because they also leave by garbage collection, which
may interrupt any thread. Must not know what an application does with a right.
"""

from __future__ import annotations

import itertools
import logging
import weakref
from typing import Any, Protocol

from ringcast.client.connection import Connection
from ringcast.client.registration import Publication, Subscription
from ringcast.control.answers import Answer, Done, Published, TagOpened
from ringcast.control.link import Received
from ringcast.control.notices import (
    FidelityNow,
    IntakeUnwanted,
    IntakeWanted,
    Notice,
    Presences,
    RightTaken,
    RingAnew,
    RingDown,
    RingPaced,
    RingUp,
    StageUnwanted,
    StageWanted,
    StreamEnded,
    SubscriberCount,
    TagGone,
)
from ringcast.control.refusal import refusal
from ringcast.control.requests import DropBuffer, HoldBuffer, IntakeDown, OpenTag, Unpublish, Unsubscribe, Unwatch
from ringcast.errors import DaemonUnavailable, ForkedError, RingcastError, TagDestroyed
from ringcast.model.tag import TagAttributes

logger = logging.getLogger("ringcast")


class OpenedTag(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def attributes(self) -> TagAttributes: ...


class Watching(Protocol):
    """A right to be told what comes and goes."""

    @property
    def number(self) -> int: ...
    def register(self) -> None: ...
    def told(self, notice: Presences) -> None: ...
    def fail(self, error: RingcastError) -> None: ...


class Registry:
    """The owner of a connection. `connection` is set once, right after both exist."""

    connection: Connection

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._tags: weakref.WeakSet[OpenedTag] = weakref.WeakSet()
        self._publications: dict[int, Publication] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._buffers: dict[int, HoldBuffer] = {}
        self._watches: weakref.WeakValueDictionary[int, Watching] = weakref.WeakValueDictionary()

    def number(self) -> int:
        """A subscription's number, unique in this session."""
        return next(self._numbers)

    def opened(self, tag: OpenedTag) -> None:
        self._tags.add(tag)

    def publish(self, publication: Publication) -> None:
        """Register a new publication. Raises what `Connection.call` does."""
        publication.register(lambda answer: self._granted(publication, answer))

    def _granted(self, publication: Publication, answer: Published) -> None:
        if publication.info is not None:
            self._publications.pop(publication.info.id, None)
        publication.info = answer.info
        self._publications[answer.info.id] = publication
        publication.counted(answer.subscribers)
        for warning in answer.warnings:
            logger.warning("%s", warning)

    def subscribe(self, subscription: Subscription) -> None:
        """Register a new subscription; its rings are attached on return. Raises what `Subscription.register` does."""
        self._subscriptions[subscription.number] = subscription
        try:
            subscription.register()
        except BaseException:
            self.abandon(subscription)
            raise

    def watch(self, watch: Watching) -> None:
        """Register a new watch; what is there was told on return. Raises what `Connection.call` does."""
        self._watches[watch.number] = watch
        try:
            watch.register()
        except BaseException:
            self.unwatch(watch.number)
            raise

    def unwatch(self, number: int) -> None:
        """Without waiting and without a lock: also called by the garbage collector."""
        self._watches.pop(number, None)
        self.connection.post(Unwatch(id=0, watch=number))

    def release(self, registration: Publication | Subscription) -> None:
        """Give a right back and wait until the daemon knows, if it is there."""
        request = self._forget(registration)
        if request is not None:
            try:
                self.connection.call(request, Done)
            except RingcastError as exc:
                logger.debug("%s was not acknowledged: %s", type(request).__name__, exc)

    def abandon(self, registration: Publication | Subscription) -> None:
        """Give a right back without waiting and without a lock: also called by the garbage collector."""
        request = self._forget(registration)
        if request is not None:
            self.connection.post(request)

    def hold(self, tag: str, at: str, depth: int, every: int, period_s: float = 0.0, max_age_s: float = 0.0) -> int:
        """Have a pull buffer held, or pulls declared; returns its number. Raises what `Connection.call` does,
        BrokenError, AdmissionRefused."""
        request = HoldBuffer(
            id=0, buffer=self.number(), tag=tag, at=at, depth=depth, every=every, period_s=period_s, max_age_s=max_age_s
        )  # fmt: skip
        self.connection.call(request, Done)
        self._buffers[request.buffer] = request
        return request.buffer

    def let_go(self, buffer: int) -> None:
        """A pull buffer is needed no more. Does not wait: also called by the garbage collector."""
        if self._buffers.pop(buffer, None) is not None:
            self.connection.post(DropBuffer(id=0, buffer=buffer))

    def _forget(self, registration: Publication | Subscription) -> Any:
        if isinstance(registration, Subscription):
            known: object = self._subscriptions.pop(registration.number, None)
        else:
            known = registration.info and self._publications.pop(registration.info.id, None)
        return registration.release_request() if known is not None else None

    # ---------------------------------------------------------------- the connection's thread

    def noticed(self, notice: Notice, received: Received[Any]) -> None:
        match notice:
            case RingUp(subscription=number):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.ring_up(notice, received)
                else:  # given up while the daemon was being restarted
                    self.connection.post(Unsubscribe(id=0, subscription=number))
            case RingDown(subscription=number, incarnation=incarnation, end=end, instead=instead):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.ring_down(incarnation, end)
                    if instead:
                        subscription.forget(incarnation)
            case StreamEnded(subscription=number, incarnation=incarnation, end=end):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.stream_ended(incarnation, end)
            case RingPaced(subscription=number, ring=ring, pace=pace):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.paced(ring, pace)
            case FidelityNow(subscription=number):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.fidelity_now(notice)
            case IntakeWanted(subscription=number):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.intake_wanted(notice, received)
                else:
                    self.connection.post(IntakeDown(id=0, intake=notice.intake, reason="the subscription is closed"))
            case IntakeUnwanted(subscription=number, intake=intake):
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.intake_unwanted(intake)
            case StageWanted(publisher=publisher) | StageUnwanted(publisher=publisher):
                if (publication := self._publications.get(publisher)) is not None:
                    publication.staged(notice)
            case SubscriberCount(publisher=publisher, count=count):
                if (publication := self._publications.get(publisher)) is not None:
                    publication.counted(count)
            case Presences(watch=number):
                if (watch := self._watches.get(number)) is not None:
                    watch.told(notice)
            case TagGone(name=name):
                self._tag_gone(name)
            case RingAnew(publisher=publisher):
                if (publication := self._publications.get(publisher)) is not None:
                    publication.renew(lambda answer: self._renewed(publication, answer))
            case RightTaken():
                self._right_taken(notice)

    def _renewed(self, publication: Publication, answer: Published) -> None:
        """A publisher goes on in another ring; the one before is given back."""
        before = publication.release_request()
        self._granted(publication, answer)
        if before is not None:
            self.connection.post(before)

    def _right_taken(self, notice: RightTaken) -> None:
        error = refusal(notice.why)
        publication = self._publications.pop(notice.publisher, None)
        if publication is not None:
            publication.fail(error)
        subscription = self._subscriptions.pop(notice.subscription, None)
        if subscription is not None:
            subscription.right_taken(error)

    def restore(self) -> None:
        """Tell a new daemon everything. Raises DaemonUnavailable when it goes away meanwhile."""
        refused = self._open_again()
        for publication in list(self._publications.values()):
            if publication.tag in refused:  # going on would mix two codecs on one tag
                publication.fail(refused[publication.tag])
                continue
            try:
                self.publish(publication)
            except RingcastError as exc:
                # It goes on sending to whoever reads its ring already; only newcomers cannot find it.
                _refused_again(f"a publisher on {publication.tag!r}", exc)
        for subscription in list(self._subscriptions.values()):
            if subscription.failure is not None:
                continue
            try:
                if subscription.pattern in refused:
                    raise refused[subscription.pattern]
                subscription.register()
            except RingcastError as exc:
                _refused_again(f"a subscription to {subscription.pattern!r}", exc)
                subscription.fail(exc)
        for request in list(self._buffers.values()):
            try:
                self.connection.call(request, Done)
            except RingcastError as exc:
                _refused_again(f"a buffer of {request.tag!r} at {request.at!r}", exc)
        for watch in list(self._watches.values()):
            try:
                watch.register()
            except RingcastError as exc:
                _refused_again("a watch", exc)
                watch.fail(exc)

    def orphaned(self, answer: Answer) -> None:
        """A right granted to a call that was interrupted is given back."""
        if isinstance(answer, Published):
            self.connection.post(Unpublish(id=0, publisher=answer.info.id))

    def _open_again(self) -> dict[str, RingcastError]:
        """Open every tag as it was; returns those that somebody has made differently since."""
        refused: dict[str, RingcastError] = {}
        for name, attributes in {tag.name: tag.attributes for tag in list(self._tags)}.items():
            requested = {field: getattr(attributes, field) for field in attributes.__struct_fields__}
            try:
                self.connection.call(OpenTag(id=0, name=name, requested=requested), TagOpened)
            except RingcastError as exc:
                _refused_again(f"tag {name!r}", exc)
                refused[name] = exc
        return refused

    def destroyed(self, name: str) -> None:
        """A restarted daemon must not hear of this tag from us."""
        for tag in [tag for tag in list(self._tags) if tag.name == name]:
            self._tags.discard(tag)

    def _tag_gone(self, name: str) -> None:
        self.destroyed(name)
        for publication in list(self._publications.values()):
            if publication.tag == name:
                self._publications.pop(publication.info.id if publication.info else 0, None)
                publication.fail(TagDestroyed(name))
        for subscription in list(self._subscriptions.values()):
            if subscription.pattern == name:
                subscription.tag_gone(name)


def _refused_again(what: str, error: RingcastError) -> None:
    if isinstance(error, DaemonUnavailable | ForkedError):
        raise error
    logger.error("the restarted daemon refused %s: %s", what, error)
