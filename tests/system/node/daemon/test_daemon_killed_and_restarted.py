"""The daemon dies without a word. Rings go on; sessions find the next daemon by themselves."""

import signal

import pytest

import ringcast


@pytest.fixture
def wait_until_attached(eventually):
    """There is no event for this in the interface: an application is not meant to care."""

    def wait(session, wanted=True):
        eventually(lambda: session.connected is wanted)

    return wait


def test_push_and_pull_go_on_without_a_daemon(daemon, session, connect):
    tag = session.tag("steady")
    pub, history = tag.publisher(), tag.history()
    sub = connect().subscribe("steady")
    pub.send(b"before")
    daemon.kill()
    pub.send(b"after")
    assert [sub.recv(timeout=30).data for _ in range(2)] == [b"before", b"after"]
    assert history.latest().data == b"after"
    assert history.at(0).data == b"before"


def test_control_calls_say_that_the_daemon_is_away(daemon, session, wait_until_attached):
    tag = session.tag("steady")
    pub = tag.publisher()
    daemon.kill()
    wait_until_attached(session, False)
    for call in (tag.publisher, tag.subscribe, tag.history, session.status, tag.destroy, lambda: session.tag("other")):
        with pytest.raises(ringcast.DaemonUnavailable) as caught:
            call()
        assert caught.value.socket_path == daemon.socket_path
    pub.close()
    session.close()


def test_numbers_go_on_when_it_is_back(daemon, session, connect, wait_until_attached):
    pub = session.publisher("steady", codec="json")
    other = connect()
    sub, wild = other.subscribe("steady"), other.subscribe("*")
    pub.send("before")
    assert sub.recv(timeout=30).seq == wild.recv(timeout=30).seq == 0
    for round in range(1, 4):
        daemon.kill()
        pub.send("between")
        daemon.start()
        wait_until_attached(session)
        wait_until_attached(other)
        assert pub.wait_for_subscribers(2, timeout=30) == 2
        pub.send("after")
        for reader in (sub, wild):
            got = [reader.recv(timeout=30) for _ in range(2)]
            assert [(msg.data, msg.seq, msg.lost) for msg in got] == [
                ("between", 2 * round - 1, 0),
                ("after", 2 * round, 0),
            ]
    with pytest.raises(ringcast.WouldBlock):
        sub.recv_nowait()
    assert session.tag("steady").attributes.codec == "json"


def test_newcomers_find_old_publishers_and_old_subscribers_find_newcomers(
    daemon, session, connect, wait_until_attached
):
    pub = session.publisher("old/pub")
    sub = session.subscribe("**")
    pub.send(b"1")
    daemon.kill()
    daemon.start()
    wait_until_attached(session)
    late = connect()
    late_sub = late.subscribe("old/pub", start="earliest")
    assert late_sub.recv(timeout=30).data == b"1"
    late.publisher("new/pub").send(b"2")
    assert [sub.recv(timeout=30).data for _ in range(2)] == [b"1", b"2"]


STOPPED_READER = """
    import ringcast
    with ringcast.connect() as session:
        sub = session.subscribe("contested", codec="json")
        print("ready")
        try:
            print(sub.recv(timeout=30).data)
        except ringcast.TagConflict as exc:
            print(exc.attribute, exc.existing, exc.requested)
    """


@pytest.fixture
def absent_reader(daemon, program):
    """A subscriber that does not notice that the daemon is another one until it is told to go on."""
    reader = program(STOPPED_READER)
    reader.expect("ready")
    reader.signal(signal.SIGSTOP)
    daemon.kill()
    daemon.start()
    return reader


def test_a_publisher_that_is_back_before_the_subscriber_loses_nothing(absent_reader, session):
    pub = session.publisher("contested", codec="json")
    pub.send("first")
    absent_reader.signal(signal.SIGCONT)
    absent_reader.expect("first")
    absent_reader.end()


def test_a_tag_made_differently_meanwhile_is_an_error_for_its_subscriber(absent_reader, session):
    session.tag("contested", codec="msgpack")
    absent_reader.signal(signal.SIGCONT)
    absent_reader.expect("codec msgpack json")
    absent_reader.end()


def test_a_tag_made_differently_meanwhile_is_an_error_for_its_publisher(daemon, connect, program):
    publisher = program("""
        import ringcast
        with ringcast.connect() as session:
            pub = session.publisher("contested", codec="json")
            print("ready")
            input()
            try:
                pub.wait_for_subscribers(99, timeout=30)
            except ringcast.TagConflict:
                print("told")
            try:
                pub.send("more")
            except ringcast.TagConflict:
                print("refused")
        """)
    publisher.expect("ready")
    publisher.signal(signal.SIGSTOP)
    daemon.kill()
    daemon.start()
    connect().tag("contested", codec="msgpack")
    publisher.signal(signal.SIGCONT)
    publisher.tell()
    publisher.expect("told", "refused")
    publisher.end()


def test_a_subscription_remembers_the_attributes_of_a_tag_whose_handle_is_gone(daemon, session, wait_until_attached):
    sub = session.subscribe("lonely", codec="json")
    daemon.kill()
    wait_until_attached(session, False)
    daemon.start()
    wait_until_attached(session)
    assert session.tag("lonely").attributes.codec == "json"
    sub.close()


def test_closing_while_the_daemon_is_away_ends_at_once(daemon, connect):
    session = connect()
    pub, sub = session.publisher("a"), session.subscribe("a")
    daemon.kill()
    session.close()
    with pytest.raises(ringcast.ClosedError):
        pub.send(b"")
    with pytest.raises(ringcast.ClosedError):
        sub.recv(timeout=0)
    with pytest.raises(ringcast.ClosedError):
        session.tag("a")


def test_nobody_starts_a_daemon_again_behind_the_users_back(daemon, session, wait_until_attached):
    daemon.kill()
    wait_until_attached(session, False)
    with pytest.raises(ringcast.DaemonUnavailable):
        ringcast.connect(socket=daemon.socket_path, start=False)
