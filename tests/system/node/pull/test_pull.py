"""Pull: the newest, the n-th newest, an absolute number, a range; also of publishers that have left."""

import pytest
from histories import check_by_age, check_by_number, check_by_range

import ringcast


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


@pytest.fixture
def tag(session):
    return session.tag("samples", depth=8, codec="json")


@pytest.fixture
def pub(tag):
    pub = tag.publisher()
    for i in range(20):
        pub.send(i)
    return pub


def test_by_age(tag, pub):
    check_by_age(tag.history(), pub)


def test_by_number(tag, pub):
    check_by_number(tag.history())


def test_by_range(tag, pub):
    check_by_range(tag.history())


def test_no_more_than_was_asked_for_is_shown(tag, pub):
    history = tag.history(depth=3)
    assert history.bounds() == (17, 19)
    with pytest.raises(ringcast.HistoryError):
        history.latest(back=3)
    with pytest.raises(ValueError, match="depth"):
        tag.history(depth=0)


def test_nothing_was_sent(tag):
    with pytest.raises(ringcast.Empty):
        tag.history().latest()
    with pytest.raises(ringcast.Empty):
        tag.history().at(0)


def test_a_history_follows_publishers_that_come_later(tag):
    history = tag.history()
    tag.publisher().send("late")
    with tag.subscribe("earliest"):  # a round trip to the daemon, after which the notice has arrived
        assert history.latest().data == "late"


def test_two_publishers_have_to_be_told_apart(tag, pub, connect):
    other = connect().publisher("samples")
    other.send("a")
    history = tag.history()
    assert history.latest().data == "a"
    assert history.latest(back=1).data == 19
    with pytest.raises(ringcast.HistoryError, match="publisher="):
        history.at(0)
    for whose in (other, other.info, other.incarnation, tag.publishers()[1]):
        mine = tag.history(publisher=whose)
        assert mine.at(0).data == "a"
        assert mine.bounds() == (0, 0)
    with pytest.raises(TypeError, match="publisher is"):
        tag.history(publisher="that one")
    other.close()
    assert tag.history().at(15).data == 15
    assert history.at(15).data == 15


def test_a_publisher_that_left_can_be_pulled(tag, pub):
    pub.close()
    assert tag.publishers() == []
    history = tag.history()
    assert history.latest().data == 19
    assert history.at(12).data == 12


def test_a_view_says_when_it_has_been_overwritten(session):
    tag = session.tag("views", depth=4)
    pub = tag.publisher()
    pub.send(b"first")
    msg = tag.history().latest(copy=False)
    assert bytes(msg.data) == b"first"
    assert msg.valid
    for _ in range(4):
        pub.send(b"later")
    assert not msg.valid


def test_a_history_is_nobodys_subscriber_and_goes_with_its_last_reference(tag, pub, session):
    for _ in range(50):
        assert tag.history().latest().data == 19
    assert tag.subscribers() == []
    assert pub.subscribers == 0
