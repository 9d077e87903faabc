"""Creating, joining, listing, destroying tags; rights that are given back."""

import gc

import pytest

import ringcast


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


def test_a_tag_has_one_number_everywhere(session, connect):
    assert session.tag("a/b").id == connect().tag("a/b").id != session.tag("a/c").id


def test_attributes_left_out_are_taken_as_they_are(session, connect):
    session.tag("a", codec="json", depth=7)
    joined = connect().tag("a", depth=7)
    assert (joined.attributes.codec, joined.attributes.depth) == ("json", 7)


def test_listings(session, connect):
    pub = session.publisher("lab/a")
    session.tag("lab/b")
    sub = connect().subscribe("lab/a", reliable=True)
    pub.send(b"12345")
    sub.recv(timeout=30)
    [a, b] = session.tags("lab/*")
    assert (a.name, a.publishers, a.subscribers, a.sent, a.bytes) == ("lab/a", 1, 1, 1, 5)
    assert (b.name, b.publishers, b.subscribers) == ("lab/b", 0, 0)
    assert [row.name for row in session.local_tags()] == ["lab/a", "lab/b"]
    [publisher] = pub.tag.publishers()
    assert publisher.info == pub.info
    assert publisher.counters["sent"] == 1
    [subscriber] = pub.tag.subscribers()
    assert (subscriber.info.reliable, subscriber.counters["received"]) == (True, 1)
    assert sum(subscriber.latency) == 1
    status = session.status()
    assert (status.clients, status.tags, status.rings) == (2, 2, 1)


def test_a_long_listing_comes_whole(session):
    for i in range(600):
        session.tag(f"many/{i:04}", schema={"title": "x" * 10, "enum": ["y" * 200]}, codec="json")
    assert [row.name for row in session.tags("many/*")] == [f"many/{i:04}" for i in range(600)]


def test_what_is_dropped_is_given_back(session, connect, eventually):
    other = connect()
    pub = session.publisher("a")
    keep = [other.subscribe("a"), other.publisher("a"), other.tag("a").history()]
    assert pub.wait_for_subscribers(1, timeout=30) == 1
    assert len(pub.tag.publishers()) == 2
    keep.clear()
    gc.collect()
    eventually(lambda: not pub.subscribers and len(pub.tag.publishers()) == 1)
    assert other.status().clients == 2


def test_destroy_refuses_while_others_hold_rights(session, connect):
    tag = session.tag("a")
    pub, sub = connect().publisher("a"), connect().subscribe("a")
    with pytest.raises(ringcast.TagInUse) as caught:
        tag.destroy()
    assert (caught.value.publishers, caught.value.subscribers) == (1, 1)
    pub.close()
    sub.close()
    tag.destroy()
    assert session.tags() == []
    with pytest.raises(ringcast.UnknownTag):
        tag.destroy()


def test_destroy_by_force_tells_everybody(session, connect):
    tag = session.tag("a")
    other = connect()
    pub, sub = other.publisher("a"), other.subscribe("a")
    pub.send(b"last")
    tag.destroy(force=True)
    assert sub.recv(timeout=30).data == b"last"
    board = sub.blackboard()
    for wait in (
        sub.recv,
        lambda: sub.recv_many(3),
        lambda: board.wait_newer(board.latest),
        lambda: pub.wait_for_subscribers(9),
    ):
        with pytest.raises(ringcast.TagDestroyed) as caught:
            wait()
        assert caught.value.name == "a"
    for send in (pub.send, lambda data: pub.send_many([data]), lambda data: pub.reserve(1)):
        with pytest.raises(ringcast.TagDestroyed):
            send(b"")
    with pytest.raises(ringcast.UnknownTag):
        tag.publisher()
    sub.close()
    pub.close()
    again = other.tag("a", codec="json")
    fresh = again.subscribe()
    again.publisher().send(1)
    assert fresh.recv(timeout=30).data == 1


def test_a_destroyed_tag_is_not_brought_back_by_a_restarted_daemon(daemon, session, eventually):
    tag, other = session.tag("a"), session.tag("b")
    tag.destroy()
    daemon.kill()
    eventually(lambda: not session.connected)
    daemon.start()
    eventually(lambda: session.connected)
    assert [row.name for row in session.tags()] == [other.name]


def test_closing_gives_everything_back(session, connect):
    other = connect()
    other.publisher("a").send(b"")
    keep = [other.publisher("a"), other.subscribe("a"), other.subscribe("**")]
    other.close()
    tag = session.tag("a")
    assert (tag.publishers(), tag.subscribers(), session.status().clients) == ([], [], 1)
    assert all(thing.closed for thing in keep)
