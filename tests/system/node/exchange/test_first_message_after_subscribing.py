"""PEERS.md no. 11: the first messages after connecting are lost. Not here, whoever comes first."""

import threading

import pytest


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


@pytest.mark.parametrize("pattern", ["race", "*", "**"])
def test_a_subscriber_gets_the_first_message_of_a_publisher_that_comes_later(session, connect, pattern):
    sub = connect().subscribe(pattern)
    for i in range(50):
        with session.publisher("race") as pub:
            pub.send(b"%d" % i)
        assert sub.recv(timeout=30).data == b"%d" % i


def test_a_publisher_that_waited_for_a_subscriber_reaches_it(session, connect):
    listener = connect()
    for i in range(50):
        with session.publisher(f"race/{i}", depth=16, capacity_bytes=4096) as pub:

            def send(pub=pub):
                pub.wait_for_subscribers(1, timeout=30)
                pub.send(b"first")
                pub.send(b"second")

            thread = threading.Thread(target=send)
            thread.start()
            with listener.subscribe(f"race/{i}", start="latest" if i % 2 else "new") as sub:
                assert [sub.recv(timeout=30).data for _ in range(2)] == [b"first", b"second"]
            thread.join()


def test_what_a_joiner_sees_first_is_its_own_choice(session):
    tag = session.tag("choice", depth=8)
    pub = tag.publisher()
    for _ in range(20):
        pub.send(b"old")

    def first(start):
        with tag.subscribe(start) as sub:
            pub_seq = pub.send(b"next")
            msg = sub.recv(timeout=30)
            return pub_seq - msg.seq, msg.lost

    assert first("new") == (0, 0)
    assert first("latest") == (1, 0)
    assert first("earliest") == (7, 1)  # the message sent just now took the place of the oldest
    assert first(pub.next_seq - 3) == (3, 0)
    behind, lost = first(5)
    assert behind == 7
    assert lost > 0


def test_the_subscriber_of_another_process_is_waited_for(session, program):
    pub = session.publisher("patient")
    with pytest.raises(TimeoutError, match="0 of 1"):
        pub.wait_for_subscribers(1, timeout=0)
    other = program("""
        import ringcast
        with ringcast.connect() as session:
            print(session.subscribe("patient").recv(timeout=30).data.decode())
        """)
    assert pub.wait_for_subscribers(1, timeout=30) == 1
    pub.send(b"welcome")
    other.expect("welcome")
    other.end()
