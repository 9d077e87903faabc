"""What a session holds, against a connection that only writes down what it is asked."""

import pytest

from ringcast.client.registration import Publication, Subscription
from ringcast.client.registry import Registry
from ringcast.control.answers import Done, Published
from ringcast.control.link import Received
from ringcast.control.notices import RingDown, RingUp, SubscriberCount, TagGone
from ringcast.control.requests import OpenTag, Publish, Subscribe, Unpublish, Unsubscribe
from ringcast.errors import (
    CorruptRing,
    DaemonUnavailable,
    NoSpace,
    QosMismatch,
    ResourceLimit,
    TagConflict,
    TagDestroyed,
)
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes


def info(number: int, incarnation: int = 7) -> PublisherInfo:
    return PublisherInfo(id=number, node="n", tag="a", incarnation=incarnation, pid=1, user="u")


def up(subscription: int, incarnation: int = 7) -> RingUp:
    return RingUp(
        subscription=subscription, info=info(1, incarnation), attributes=TagAttributes(), depth=1, capacity_bytes=1,
        born_after=False, ring=incarnation, next_seq=0,
    )  # fmt: skip


class FakeConnection:
    def __init__(self) -> None:
        self.asked: list[object] = []
        self.posted: list[object] = []
        self.refuse: dict[type, Exception] = {}
        self.before_answer = lambda request: None
        self._publishers = 0

    def call(self, request, answer, fds=(), then=None):
        self.asked.append(request)
        if type(request) in self.refuse:
            raise self.refuse[type(request)]
        self.before_answer(request)
        made = Done(id=0)
        if answer is Published:
            self._publishers += 1
            made = Published(id=0, info=info(self._publishers), subscribers=2)
        if then is not None:
            then(made)
        return made

    def post(self, request, fds=(), then=None):
        self.posted.append(request)


class FakePublisher:
    ring_fd = bell_fd = 0
    incarnation, depth, capacity_bytes = 7, 1, 1
    failure = None
    fanouts = 0

    def attach_fanout(self, fd):
        self.fanouts += 1

    def fail(self, error):
        self.failure = error

    def stage(self, notice):
        self.staged = notice


class FakeSubscription(Subscription):
    def __init__(self, connection, number, pattern="a"):
        super().__init__(connection, number, pattern)
        self.attached: list[int] = []
        self.trouble: Exception | None = None

    def request(self):
        return Subscribe(id=0, pattern=self.pattern, subscription=self.number), ()

    def attach(self, up, ring_fd, bell_fd):
        if self.trouble is not None:
            raise self.trouble
        self.attached.append(up.info.incarnation)

    def ring_down(self, incarnation, end=None):
        self.attached.remove(incarnation)

    def fail(self, error):
        self.failure = error


class FakeTag:
    name = "a"
    attributes = TagAttributes(codec="json", depth=3)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level("CRITICAL", "ringcast")


@pytest.fixture
def connection():
    return FakeConnection()


@pytest.fixture
def registry(connection):
    registry = Registry()
    registry.connection = connection
    return registry


@pytest.fixture
def publisher():
    return FakePublisher()


@pytest.fixture
def publication(registry, connection, publisher):
    publication = Publication(connection, "a", publisher)
    registry.publish(publication)
    return publication


@pytest.fixture
def subscription(registry, connection):
    subscription = FakeSubscription(connection, registry.number())
    registry.subscribe(subscription)
    return subscription


def notice(registry, message, fds=(), limit=None):
    registry.noticed(message, Received(message, list(fds), limit))


def test_counts_reach_their_publication(registry, publication):
    assert publication.subscribers == 2
    notice(registry, SubscriberCount(publisher=1, count=5))
    notice(registry, SubscriberCount(publisher=99, count=9))
    assert publication.subscribers == 5


def test_rings_reach_their_subscription(registry, subscription):
    notice(registry, up(subscription.number), (-1, -1))
    assert subscription.attached == [7]
    notice(registry, RingDown(subscription=subscription.number, incarnation=7))
    assert subscription.attached == []


def test_a_ring_for_nobody_is_declined(registry, connection):
    notice(registry, up(99), (-1, -1))
    assert connection.posted == [Unsubscribe(id=0, subscription=99)]


def test_a_closed_subscription_takes_no_ring(registry, subscription):
    assert subscription.close(lambda: None)
    assert not subscription.close(lambda: None)
    notice(registry, up(subscription.number), (-1, -1))
    assert subscription.attached == []


@pytest.mark.parametrize("trouble", [QosMismatch("a", "b", "c"), ResourceLimit("a", "b")])
def test_a_ring_that_cannot_be_read_is_an_error_of_the_subscribing_call(registry, connection, trouble):
    subscription = FakeSubscription(connection, registry.number())
    subscription.trouble = trouble
    connection.before_answer = lambda _: notice(registry, up(subscription.number), (-1, -1))
    with pytest.raises(type(trouble)):
        registry.subscribe(subscription)
    assert connection.posted == [Unsubscribe(id=0, subscription=subscription.number)]


def test_later_it_is_an_error_of_the_subscription(registry, subscription):
    notice(registry, up(subscription.number), limit=ResourceLimit("no room", "ulimit"))
    assert isinstance(subscription.failure, ResourceLimit)


def test_a_ring_that_its_own_publisher_damaged_costs_only_that_ring(registry, subscription):
    subscription.trouble = CorruptRing("magic")
    notice(registry, up(subscription.number), (-1, -1))
    assert subscription.failure is None
    subscription.trouble = None
    notice(registry, up(subscription.number, 8), (-1, -1))
    assert subscription.attached == [8]


def test_a_tag_destroyed_by_force_fails_its_rights_only(registry, connection, publication, publisher, subscription):
    wild = FakeSubscription(connection, registry.number(), "*")
    registry.subscribe(wild)
    notice(registry, TagGone(name="a"))
    assert isinstance(publisher.failure, TagDestroyed)
    assert isinstance(publication.failure, TagDestroyed)
    assert isinstance(subscription.failure, TagDestroyed)
    assert wild.failure is None


def test_everything_is_registered_again_tags_first(registry, connection, publication, publisher, subscription):
    tag = FakeTag()
    registry.opened(tag)
    connection.asked.clear()
    registry.restore()
    assert [type(request) for request in connection.asked] == [OpenTag, Publish, Subscribe]
    assert connection.asked[0].requested == {
        "codec": "json", "schema": None, "depth": 3, "capacity_bytes": 4 << 20, "max_wait_s": 0.1, "prefault": False,
        "at": "", "transport": "", "priority": "",
    }  # fmt: skip
    assert connection.asked[1].incarnation == 7
    assert publisher.fanouts == 2
    assert publication.info.id == 2
    notice(registry, SubscriberCount(publisher=2, count=9))
    assert publication.subscribers == 9


def test_a_tag_made_differently_fails_whoever_uses_it(registry, connection, publication, publisher, subscription):
    tag = FakeTag()
    registry.opened(tag)
    connection.refuse[OpenTag] = TagConflict("a", "codec", "bytes", "json")
    connection.asked.clear()
    registry.restore()
    assert [type(request) for request in connection.asked] == [OpenTag]
    assert isinstance(publisher.failure, TagConflict)
    assert isinstance(subscription.failure, TagConflict)


def test_a_publisher_without_a_place_goes_on_by_itself(registry, connection, publication, publisher, subscription):
    connection.refuse[Publish] = NoSpace(1, 2, 3)
    registry.restore()
    assert publisher.failure is None
    assert type(connection.asked[-1]) is Subscribe


def test_a_daemon_that_goes_away_meanwhile_ends_the_attempt(registry, connection, publication, subscription):
    connection.refuse[Publish] = DaemonUnavailable("/s", "gone")
    with pytest.raises(DaemonUnavailable):
        registry.restore()
    assert subscription.failure is None


def test_a_right_granted_to_nobody_is_given_back(registry, connection):
    registry.orphaned(Published(id=1, info=info(5), subscribers=0))
    registry.orphaned(Done(id=2))
    assert connection.posted == [Unpublish(id=0, publisher=5)]


def test_rights_are_given_back_once(registry, connection, publication, subscription):
    registry.release(publication)
    registry.release(publication)
    registry.abandon(subscription)
    registry.abandon(subscription)
    assert [r for r in connection.asked if isinstance(r, Unpublish)] == [Unpublish(id=0, publisher=1)]
    assert connection.posted == [Unsubscribe(id=0, subscription=subscription.number)]


def test_a_publisher_that_nobody_holds_any_more_is_not_registered_again(registry, connection):
    publisher = FakePublisher()
    publication = Publication(connection, "a", publisher)
    registry.publish(publication)
    del publisher
    connection.asked.clear()
    registry.restore()
    assert connection.asked == []
