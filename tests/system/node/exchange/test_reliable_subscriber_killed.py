"""Publishers wait for reliable readers, and only for those who live."""

import pytest

import ringcast

READER = """
    import ringcast
    with ringcast.connect() as session:
        sub = session.subscribe("exact", reliable=True)
        print("ready")
        input()
        for i in range(1000):
            msg = sub.recv(timeout=30)
            assert (msg.seq, msg.lost) == (i, 0)
        print("all")
    """


def test_a_fast_publisher_loses_nothing_to_a_reliable_reader(session, program):
    pub = session.publisher("exact", depth=16, max_wait_s=30)
    reader = program(READER)
    reader.expect("ready")
    reader.tell()
    for i in range(1000):
        pub.send(b"%d" % i)
    reader.expect("all")
    reader.end()
    assert pub.counters()["overruns"] == 0


def test_a_reader_that_died_releases_the_publisher(session, program):
    # Longer than any test may take: the send below returns because the daemon freed the dead reader's slot.
    pub = session.publisher("exact", depth=4, max_wait_s=3600)
    reader = program(READER)
    reader.expect("ready")
    for i in range(4):
        pub.send(b"%d" % i)
    reader.kill()
    for i in range(20):
        pub.send(b"%d" % i)
    assert pub.counters()["overruns"] == 0


def test_a_reader_that_sleeps_costs_the_publisher_its_bound_and_both_are_told(session, connect):
    pub = session.publisher("exact", depth=4, max_wait_s=0.05)
    sub = connect().subscribe("exact", reliable=True)
    for i in range(4):
        pub.send(b"%d" % i)
    with pytest.raises(ringcast.SlowSubscriber) as caught:
        pub.send(b"4")
    assert caught.value.waited_s == 0.05
    assert len(caught.value.pids) == 1
    assert pub.next_seq == 4
    assert pub.send(b"4") == 4
    msg = sub.recv(timeout=30)
    assert (msg.seq, msg.lost) == (1, 1)


def test_a_publisher_may_choose_to_pass_over_whoever_is_slow(session, connect):
    tag = session.tag("exact", depth=4, max_wait_s=0.01)
    pub = tag.publisher(on_slow="skip")
    sub = connect().subscribe("exact", reliable=True)
    for i in range(10):
        pub.send(b"%d" % i)
    assert sub.recv(timeout=30).lost == 6
    assert pub.counters()["overruns"] > 0
    with pytest.raises(ValueError, match="on_slow"):
        tag.publisher(on_slow="sometimes")


def test_a_tag_may_refuse_reliable_readers(session):
    tag = session.tag("loose", max_wait_s=0)
    with pytest.raises(ringcast.QosMismatch, match="max_wait_s=0"):
        tag.subscribe(reliable=True)
    tag.subscribe()


def test_a_reliable_wildcard_that_meets_such_a_tag_is_told(session, connect):
    sub = session.subscribe("mixed/*", reliable=True)
    connect().publisher("mixed/loose", max_wait_s=0).send(b"")
    with pytest.raises(ringcast.QosMismatch, match="max_wait_s=0"):
        sub.recv(timeout=30)
