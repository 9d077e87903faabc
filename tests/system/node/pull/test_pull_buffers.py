"""Pull buffers with a depth of their own: at the subscriber's node, the publisher's, or one in between."""

import pytest

import ringcast

TAG = "lab/samples"


@pytest.fixture
def mesh(shared_mesh):
    return shared_mesh(3)


@pytest.fixture
def pub(mesh, eventually):
    """On node a; its ring holds 8."""
    a, b, c = mesh
    pub = a.session.tag(TAG, depth=8, codec="json").publisher()
    eventually(lambda: b.knows(TAG) and c.knows(TAG))
    return pub


def send(pub, first, last):
    for i in range(first, last):
        assert pub.send(i) == i


def newest(history):
    """The newest number held there, -1 before anything came."""
    try:
        return history.latest().seq
    except ringcast.Empty:
        return -1


@pytest.mark.parametrize("place", ["subscriber", "node:a", "node:b", "node:c"])
def test_a_buffer_deeper_than_the_publishers_ring(mesh, pub, eventually, place):
    _, b, _ = mesh
    history = b.session.tag(TAG, create=False).history(depth=100, at=place)
    for i in range(50):
        pub.send(i)
        if i % 8 == 7:  # no faster than the way there takes them
            eventually(lambda i=i: newest(history) == i)
    eventually(lambda: newest(history) == 49)
    assert history.bounds() == (0, 49)
    assert [msg.data for msg in history.range(10, 20)] == list(range(10, 21))
    assert history.latest(back=49).data == 0


def test_a_buffer_begins_with_what_the_publisher_still_has(mesh, pub, eventually):
    _, b, _ = mesh
    send(pub, 0, 20)
    history = b.session.tag(TAG, create=False).history(depth=3, at="node:c")
    eventually(lambda: newest(history) == 19)
    assert history.bounds() == (17, 19)
    with pytest.raises(ringcast.Overwritten):
        history.at(16)


def test_a_buffer_of_every_third(mesh, pub, eventually):
    _, b, _ = mesh
    history = b.session.tag(TAG, create=False).history(depth=4, every=3, at="node:c")
    for i in range(31):
        pub.send(i)
        if i % 8 == 7:
            eventually(lambda i=i: newest(history) == i // 3 * 3)
    eventually(lambda: newest(history) == 30)
    assert [msg.seq for msg in history.since(0)] == [21, 24, 27, 30]


def test_the_publisher_leaves_and_the_buffer_stays(mesh, pub, eventually):
    a, b, c = mesh
    history = b.session.tag(TAG, create=False).history(depth=100, at="node:c")
    send(pub, 0, 8)
    eventually(lambda: newest(history) == 7)
    assert history.bounds() == (0, 7)
    pub.close()
    eventually(lambda: not any(row.alive for row in b.session.tag(TAG).publishers()))
    assert [msg.data for msg in history.range(0, 7)] == list(range(8))
    a.kill()
    eventually(lambda: {node.name: node.state for node in c.session.nodes()}["a"] == "gone")
    assert history.latest().data == 7
    assert history.at(0).data == 0


def test_a_buffer_ends_with_its_history_and_with_its_program(mesh, pub, eventually):
    _, b, c = mesh
    other = b.connect()
    histories = [session.tag(TAG, create=False).history(depth=50, at="node:c") for session in (b.session, other)]
    assert len(c.incoming(tag=TAG)) == 1  # equal ones are shared
    histories[0].close()
    pub.send(0)
    eventually(lambda: newest(histories[1]) == 0)
    other.close()
    eventually(lambda: not c.incoming(tag=TAG))


def test_the_node_that_holds_it_restarts(mesh, pub, eventually):
    _, b, c = mesh
    history = b.session.tag(TAG, create=False).history(depth=50, at="node:c")
    send(pub, 0, 3)
    eventually(lambda: newest(history) == 2)
    c.kill()
    eventually(lambda: {node.name: node.state for node in b.session.nodes()}["c"] == "gone")
    with pytest.raises(ringcast.BrokenError):
        history.latest()
    c.restart()
    eventually(lambda: c.incoming(tag=TAG))
    assert [msg.data for msg in history.since(0)] == [0, 1, 2]


def test_there_is_no_such_node(mesh, pub):
    _, b, _ = mesh
    with pytest.raises(ringcast.BrokenError, match="'moon' is not in the mesh"):
        b.session.tag(TAG, create=False).history(depth=5, at="node:moon")


def test_a_daemon_without_a_network_has_no_buffers_elsewhere(session):
    with pytest.raises(ringcast.BrokenError, match="has no network"):
        session.tag(TAG).history(depth=5, at="node:c")
