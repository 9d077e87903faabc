"""A wildcard selects tags, those there are and those to come."""

import pytest

import ringcast


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


def test_publishers_are_followed_as_they_come_and_go(session, connect, eventually):
    sub = connect().subscribe("lab/*/temp")
    first = session.publisher("lab/a/temp")
    first.send(b"1")
    assert sub.recv(timeout=30).tag == "lab/a/temp"
    second = session.publisher("lab/b/temp", codec="json")
    second.send({"t": 2})
    msg = sub.recv(timeout=30)
    assert (msg.tag, msg.data) == ("lab/b/temp", {"t": 2})
    session.publisher("lab/a/humidity").send(b"not this")
    first.send(b"last words")
    first.close()
    second.send(3)
    assert sorted((sub.recv(timeout=30).tag, sub.recv(timeout=30).tag)) == ["lab/a/temp", "lab/b/temp"]

    def only_one_is_left():
        with pytest.raises(ringcast.WouldBlock):
            sub.recv_nowait()
        return sub.stats().rings == 1

    eventually(only_one_is_left)


def test_any_number_of_levels(session):
    sub = session.subscribe("lab/**")
    for name in ("lab", "lab/a", "lab/a/b/c", "other/lab"):
        session.publisher(name).send(name.encode())
    assert {sub.recv(timeout=30).data for _ in range(3)} == {b"lab", b"lab/a", b"lab/a/b/c"}
    with pytest.raises(ringcast.WouldBlock):
        sub.recv_nowait()


def test_a_wildcard_counts_as_a_subscriber(session, connect):
    pub = session.publisher("lab/a")
    sub = connect().subscribe("lab/*")
    assert pub.wait_for_subscribers(1, timeout=30) == 1
    assert [row.info.pattern for row in pub.tag.subscribers()] == ["lab/*"]
    sub.close()
    assert pub.tag.subscribers() == []


def test_a_hundred_tags_are_waited_for_together(session, connect):
    pubs = [session.publisher(f"wide/{i}", depth=8, capacity_bytes=4096) for i in range(100)]
    sub = connect().subscribe("wide/*", reliable=True)
    for round in range(3):
        for pub in reversed(pubs):
            pub.send(b"%d" % round)
    got = sorted((sub.recv(timeout=30).tag, i) for i in range(300))
    assert len({tag for tag, _ in got}) == 100


def test_a_plain_name_changes_to_a_mailbox_when_publishers_get_many(session, connect):
    sub = connect().subscribe("crowd", depth=64, capacity_bytes=4096)
    pubs = []
    for i in range(20):
        pubs.append(session.publisher("crowd"))
        for pub in pubs:
            pub.send(b"%d" % i)
        assert [sub.recv(timeout=30).data for _ in pubs] == [b"%d" % i] * len(pubs)
    assert sub.stats().lost == 0


def test_a_tag_whose_codec_is_not_installed_is_not_passed_by_in_silence(session, connect, program):
    sub = session.subscribe("odd/*")
    other = program("""
        import ringcast, ringcast.codec.registry as registry
        registry._BUILT_IN["martian"] = "ringcast.codec.raw:BYTES"
        with ringcast.connect() as session:
            a, b = session.publisher("odd/a", codec="martian"), session.publisher("odd/b")
            a.send(b"?")
            print("sent")
            input()
            b.send(b"!")
            input()
        """)
    other.expect("sent")
    with pytest.raises(ringcast.DecodeError, match="martian"):
        sub.recv(timeout=30)
    other.tell()
    assert sub.recv(timeout=30).data == b"!"
    with pytest.raises(ringcast.CodecError, match="martian"):
        session.tag("odd/a")


def test_attributes_beside_a_wildcard_are_refused(session):
    with pytest.raises(TypeError, match="depth"):
        session.subscribe("a/*", depth=3)
    with pytest.raises(ringcast.BadTagName):
        session.subscribe("a/x*")
