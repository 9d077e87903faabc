"""A reliable subscription on another node while a daemon on the way is dead: the publisher waits, within the tag's
bound, and the stream goes on from the publisher's ring where the reader was."""

import threading

import pytest

import ringcast

DEPTH = 64
MANY = 600
PATIENT = {"depth": DEPTH, "max_wait_s": 20.0}


def read_up_to(sub, last):
    got = []
    while not got or got[-1].seq < last:
        got.append(sub.recv(timeout=30))
    return got


def send_in_a_thread(pub):
    """More than the ring holds: without a place kept in it, most would be overwritten."""
    thread = threading.Thread(target=lambda: [pub.send(b"%d" % i) for i in range(MANY)])
    thread.start()
    return thread


@pytest.mark.parametrize("transport", ["nak", "tcp"])
def test_the_publishers_daemon_dies_and_comes_back(make_mesh, eventually, transport):
    a, b = make_mesh(2)
    pub = a.session.publisher("sure", **PATIENT)
    eventually(lambda: b.knows("sure"))
    sub = b.session.subscribe("sure", reliable=True, transport=transport)
    first = pub.send(b"before")
    assert [msg.seq for msg in read_up_to(sub, first)] == [first]
    a.kill()
    sending = send_in_a_thread(pub)
    a.restart()
    got = read_up_to(sub, first + MANY)
    sending.join()
    assert [(msg.seq, msg.lost) for msg in got] == [(first + 1 + i, 0) for i in range(MANY)]
    assert sub.lost == 0


@pytest.mark.parametrize("transport", ["nak", "tcp"])
def test_the_subscribers_daemon_dies_and_comes_back(make_mesh, eventually, transport):
    a, b = make_mesh(2)
    pub = a.session.publisher("sure", **PATIENT)
    eventually(lambda: b.knows("sure"))
    sub = b.session.subscribe("sure", reliable=True, transport=transport)
    first = pub.send(b"before")
    assert [msg.seq for msg in read_up_to(sub, first)] == [first]
    b.kill()
    sending = send_in_a_thread(pub)
    b.restart()
    got = read_up_to(sub, first + MANY)
    sending.join()
    assert len(got) + sum(msg.lost for msg in got) == MANY
    assert sub.lost == sum(msg.lost for msg in got)
    if transport == "nak":  # credits say what was read
        assert sub.lost == 0
    else:  # a batch that the kernel took before it knew of the death
        assert sub.lost <= DEPTH


def test_a_publisher_waits_for_a_dead_daemon_no_longer_than_its_bound(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("sure", depth=DEPTH, max_wait_s=0.05)
    eventually(lambda: b.knows("sure"))
    sub = b.session.subscribe("sure", reliable=True)
    first = pub.send(b"before")
    assert [msg.seq for msg in read_up_to(sub, first)] == [first]
    a.kill()
    slow, last = 0, first
    for i in range(MANY):
        try:
            last = pub.send(b"%d" % i)
        except ringcast.SlowSubscriber:
            slow += 1
    assert slow <= 1
    a.restart()
    eventually(lambda: len(b.incoming()) == 1)
    last = pub.send(b"after")
    got = read_up_to(sub, last)
    assert len(got) + sum(msg.lost for msg in got) == last - first
