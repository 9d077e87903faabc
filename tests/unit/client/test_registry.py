"""What a session holds, against a connection that only writes down what it is asked."""

import pytest

from ringcast.client.registration import Publication, Subscription
from ringcast.client.registry import Holdings
from ringcast.control.link import Received
from ringcast.control.messages import (
    Done,
    OpenTag,
    Publish,
    Published,
    RingDown,
    RingUp,
    Subscribe,
    SubscriberCount,
    TagGone,
    Unpublish,
    Unsubscribe,
)
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
        made = None
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
def holdings(connection):
    holdings = Holdings()
    holdings.connection = connection
    return holdings


@pytest.fixture
def publisher():
    return FakePublisher()


@pytest.fixture
def publication(holdings, connection, publisher):
    publication = Publication(connection, "a", publisher)
    holdings.publish(publication)
    return publication


@pytest.fixture
def subscription(holdings, connection):
    subscription = FakeSubscription(connection, holdings.number())
    holdings.subscribe(subscription)
    return subscription


def notice(holdings, message, fds=(), limit=None):
    holdings.noticed(message, Received(message, list(fds), limit))


def test_counts_reach_their_publication(holdings, publication):
    assert publication.subscribers == 2
    notice(holdings, SubscriberCount(publisher=1, count=5))
    notice(holdings, SubscriberCount(publisher=99, count=9))
    assert publication.subscribers == 5


def test_rings_reach_their_subscription(holdings, subscription):
    notice(holdings, up(subscription.number), (-1, -1))
    assert subscription.attached == [7]
    notice(holdings, RingDown(subscription=subscription.number, incarnation=7))
    assert subscription.attached == []


def test_a_ring_for_nobody_is_declined(holdings, connection):
    notice(holdings, up(99), (-1, -1))
    assert connection.posted == [Unsubscribe(id=0, subscription=99)]


def test_a_closed_subscription_takes_no_ring(holdings, subscription):
    assert subscription.close(lambda: None)
    assert not subscription.close(lambda: None)
    notice(holdings, up(subscription.number), (-1, -1))
    assert subscription.attached == []


@pytest.mark.parametrize("trouble", [QosMismatch("a", "b", "c"), ResourceLimit("a", "b")])
def test_a_ring_that_cannot_be_read_is_an_error_of_the_subscribing_call(holdings, connection, trouble):
    subscription = FakeSubscription(connection, holdings.number())
    subscription.trouble = trouble
    connection.before_answer = lambda _: notice(holdings, up(subscription.number), (-1, -1))
    with pytest.raises(type(trouble)):
        holdings.subscribe(subscription)
    assert connection.posted == [Unsubscribe(id=0, subscription=subscription.number)]


def test_later_it_is_an_error_of_the_subscription(holdings, subscription):
    notice(holdings, up(subscription.number), limit=ResourceLimit("no room", "ulimit"))
    assert isinstance(subscription.failure, ResourceLimit)


def test_a_ring_that_its_own_publisher_damaged_costs_only_that_ring(holdings, subscription):
    subscription.trouble = CorruptRing("magic")
    notice(holdings, up(subscription.number), (-1, -1))
    assert subscription.failure is None
    subscription.trouble = None
    notice(holdings, up(subscription.number, 8), (-1, -1))
    assert subscription.attached == [8]


def test_a_tag_destroyed_by_force_fails_its_rights_only(holdings, connection, publication, publisher, subscription):
    wild = FakeSubscription(connection, holdings.number(), "*")
    holdings.subscribe(wild)
    notice(holdings, TagGone(name="a"))
    assert isinstance(publisher.failure, TagDestroyed)
    assert isinstance(publication.failure, TagDestroyed)
    assert isinstance(subscription.failure, TagDestroyed)
    assert wild.failure is None


def test_everything_is_registered_again_tags_first(holdings, connection, publication, publisher, subscription):
    tag = FakeTag()
    holdings.opened(tag)
    connection.asked.clear()
    holdings.restore()
    assert [type(request) for request in connection.asked] == [OpenTag, Publish, Subscribe]
    assert connection.asked[0].requested == {
        "codec": "json", "schema": None, "depth": 3, "capacity_bytes": 4 << 20, "max_wait_s": 0.1, "prefault": False,
        "at": "", "transport": "",
    }  # fmt: skip
    assert connection.asked[1].incarnation == 7
    assert publisher.fanouts == 2
    assert publication.info.id == 2
    notice(holdings, SubscriberCount(publisher=2, count=9))
    assert publication.subscribers == 9


def test_a_tag_made_differently_fails_whoever_uses_it(holdings, connection, publication, publisher, subscription):
    tag = FakeTag()
    holdings.opened(tag)
    connection.refuse[OpenTag] = TagConflict("a", "codec", "bytes", "json")
    connection.asked.clear()
    holdings.restore()
    assert [type(request) for request in connection.asked] == [OpenTag]
    assert isinstance(publisher.failure, TagConflict)
    assert isinstance(subscription.failure, TagConflict)


def test_a_publisher_without_a_place_goes_on_by_itself(holdings, connection, publication, publisher, subscription):
    connection.refuse[Publish] = NoSpace(1, 2, 3)
    holdings.restore()
    assert publisher.failure is None
    assert type(connection.asked[-1]) is Subscribe


def test_a_daemon_that_goes_away_meanwhile_ends_the_attempt(holdings, connection, publication, subscription):
    connection.refuse[Publish] = DaemonUnavailable("/s", "gone")
    with pytest.raises(DaemonUnavailable):
        holdings.restore()
    assert subscription.failure is None


def test_a_right_granted_to_nobody_is_given_back(holdings, connection):
    holdings.orphaned(Published(id=1, info=info(5), subscribers=0))
    holdings.orphaned(Done(id=2))
    assert connection.posted == [Unpublish(id=0, publisher=5)]


def test_rights_are_given_back_once(holdings, connection, publication, subscription):
    holdings.release(publication)
    holdings.release(publication)
    holdings.abandon(subscription)
    holdings.abandon(subscription)
    assert [r for r in connection.asked if isinstance(r, Unpublish)] == [Unpublish(id=0, publisher=1)]
    assert connection.posted == [Unsubscribe(id=0, subscription=subscription.number)]


def test_a_publisher_that_nobody_holds_any_more_is_not_registered_again(holdings, connection):
    publisher = FakePublisher()
    publication = Publication(connection, "a", publisher)
    holdings.publish(publication)
    del publisher
    connection.asked.clear()
    holdings.restore()
    assert connection.asked == []
