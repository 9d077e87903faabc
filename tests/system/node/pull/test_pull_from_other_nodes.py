"""Pull across nodes: at the publisher's node, at the subscriber's, at a named one; by number, age, range and time; of
publishers that have left, and of nodes that are not there."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from histories import check_by_age, check_by_number, check_by_range
from processes import said_by_ringcast

import ringcast
from ringcast.client.remote_history import RemoteHistory
from ringcast.client.rings.local_history import LocalHistory

TAG = "lab/samples"


@pytest.fixture
def mesh(shared_mesh):
    return shared_mesh(2)


@pytest.fixture
def pub(mesh, eventually):
    """On node a: 0 to 19, of which its ring holds the last 8."""
    a, b = mesh
    pub = a.session.tag(TAG, depth=8, codec="json").publisher()
    for i in range(20):
        pub.send(i)
    eventually(lambda: b.knows(TAG))
    return pub


@pytest.fixture
def tag(mesh, pub):
    """As node b has it."""
    return mesh[1].session.tag(TAG, create=False)


def test_by_age(tag, pub):
    history = tag.history()
    check_by_age(history, pub)
    with pytest.raises(ringcast.Overwritten) as gone:
        history.latest(back=8)
    assert (gone.value.oldest, gone.value.newest) == (13, 20)
    with pytest.raises(ringcast.HistoryError):
        history.latest(back=100)


def test_by_number(tag):
    check_by_number(tag.history())


def test_by_range(tag):
    check_by_range(tag.history(at="publisher"))


def test_by_time(tag):
    history = tag.history()
    held = history.since(0)
    assert history.before(held[3].sent_ns).seq >= held[3].seq
    assert history.before(held[-1].sent_ns + 10**9).seq == 19
    with pytest.raises(ringcast.HistoryError, match="was sent by"):
        history.before(held[0].sent_ns - 1)
    between = history.between(held[2].sent_ns, held[5].sent_ns)
    assert {15, 14, 16, 17} <= {msg.data for msg in between} <= set(range(12, 20))
    assert history.between(0, held[0].sent_ns - 1) == []


def test_what_is_pulled_is_what_a_subscriber_gets(mesh, tag, pub):
    here = mesh[0].session.tag(TAG).history()
    there = tag.history()
    assert isinstance(here, LocalHistory)
    assert isinstance(there, RemoteHistory)
    pub.send({"x": [1]}, event_ns=5, discardable=True)
    mine, pulled = here.latest(), there.latest()
    assert isinstance(pulled, ringcast.Message)
    for field in ("data", "seq", "tag", "publisher", "event_ns", "sent_ns", "lost", "discardable", "valid"):
        assert getattr(pulled, field) == getattr(mine, field), field
    assert pulled.received_ns >= pulled.sent_ns


def test_no_more_than_was_asked_for_is_shown(tag):
    assert tag.history(depth=3).bounds() == (17, 19)
    assert [msg.data for msg in tag.history(depth=2, every=3).since(0)] == [15, 18]
    with pytest.raises(ValueError, match="depth"):
        tag.history(depth=0, at="publisher")
    with pytest.raises(ValueError, match="at is"):
        tag.history(at="there")
    with pytest.raises(ValueError, match="every"):
        tag.history(every=0)


def test_every_nth(tag):
    history = tag.history(every=3)
    assert history.latest().data == 18
    assert history.latest(back=1).data == 15
    assert history.bounds() == (12, 18)
    tail = history.since(7)
    assert [(msg.seq, msg.lost) for msg in tail] == [(12, 1), (15, 0), (18, 0)]
    assert history.at(15).data == 15
    with pytest.raises(ringcast.HistoryError, match="every 3th"):
        history.at(16)
    with pytest.raises(ringcast.HistoryError, match="go back"):
        history.latest(back=3)


def test_every_nth_on_the_publishers_own_node(mesh, pub):
    history = mesh[0].session.tag(TAG).history(every=4)
    assert [msg.seq for msg in history.since(0)] == [12, 16]


def test_a_message_of_a_mebibyte_and_many_of_them(mesh, eventually):
    a, b = mesh
    pub = a.session.tag("lab/images", depth=32, capacity_bytes=2**26).publisher()
    for i in range(30):
        pub.send(bytes([i]) * 2**20)
    eventually(lambda: b.knows("lab/images"))
    history = b.session.tag("lab/images").history()
    assert history.latest().data == bytes([29]) * 2**20
    found = history.since(0)  # more than one answer holds
    assert [msg.data[0] for msg in found] == list(range(30))
    assert all(len(msg.data) == 2**20 for msg in found)
    assert not any(msg.lost for msg in found)


def test_a_publisher_that_has_left(tag, pub, mesh, eventually):
    pub.close()
    eventually(lambda: mesh[1].knows(TAG, publishers=0))
    history = tag.history()
    assert history.latest().data == 19
    assert history.at(12).data == 12
    assert history.staleness_s() == math.inf
    assert tag.publishers() == []
    assert [row.info.node for row in tag.publishers(left=True)] == ["a"]


def test_a_publisher_that_was_killed(mesh, run_program, eventually):
    a, b = mesh
    program = run_program(
        """
        import ringcast, time
        pub = ringcast.connect(start=False).publisher("lab/killed", codec="json")
        for i in range(5):
            pub.send(i)
        print("sent")
        time.sleep(100)
        """,
        a.daemon.socket_path,
    )
    program.expect("sent")
    eventually(lambda: b.knows("lab/killed"))
    program.kill()
    eventually(lambda: b.knows("lab/killed", publishers=0))
    assert [msg.data for msg in b.session.tag("lab/killed").history().since(0)] == [0, 1, 2, 3, 4]


def test_publishers_on_both_nodes(mesh, tag, pub, eventually):
    a, b = mesh
    other = tag.publisher()
    other.send("b0")
    eventually(lambda: a.knows(TAG, publishers=2))
    for session in (a.session, b.session):
        history = session.tag(TAG).history()
        assert history.latest().data == "b0"
        assert history.latest(back=2).data == 18
        assert [msg.data for msg in history.between(0, 2**62)] == [*range(12, 20), "b0"]
        assert history.before(2**62).data == "b0"
        with pytest.raises(ringcast.HistoryError, match="publisher="):
            history.at(0)
        with pytest.raises(ringcast.HistoryError, match="go back"):
            history.latest(back=9)
        assert session.tag(TAG).history(publisher=other.incarnation).at(0).data == "b0"
        assert session.tag(TAG).history(publisher=pub.info).at(15).data == 15
    assert isinstance(tag.history(publisher=other), LocalHistory)
    assert isinstance(tag.history(publisher=pub.info), RemoteHistory)


def test_at_a_named_node(shared_mesh, eventually, take):
    a, b, c = shared_mesh(3)
    pub = a.session.tag(TAG, depth=8, codec="json").publisher()
    eventually(lambda: b.knows(TAG) and c.knows(TAG))
    history = c.session.tag(TAG).history(at="node:b")
    with pytest.raises(ringcast.Empty, match="'b' holds nothing"):
        history.latest()
    sub = b.session.tag(TAG).subscribe(every=2, transport="tcp", at="publisher")
    for i in range(20):
        pub.send(i)
    take(sub, 18)
    assert history.latest().data == 18
    assert history.latest().publisher.node == "a"
    assert [msg.seq for msg in history.since(13)] == [14, 16, 18]
    assert not any(msg.lost for msg in history.since(13))
    assert [msg.seq for msg in c.session.tag(TAG).history(at="node:b", every=4).since(10)] == [12, 16]
    assert c.session.tag(TAG).history(at="node:a").latest().data == 19
    assert b.session.tag(TAG).history(at="subscriber").latest().data == 18


def test_at_the_subscriber(tag, pub, take):
    history = tag.history(at="subscriber")
    with pytest.raises(ringcast.Empty):
        history.latest()
    sub = tag.subscribe(transport="tcp")
    for i in range(20, 23):
        pub.send(i)
    take(sub, 22)
    assert history.latest().data == 22
    assert history.bounds() == (20, 22)
    assert [msg.data for msg in history.since(0)] == [20, 21, 22]


def test_a_node_that_is_not_there(mesh, tag):
    with pytest.raises(ringcast.BrokenError, match="'attic' is not in the mesh"):
        tag.history(at="node:attic").latest()


def test_a_node_that_is_gone(mesh, tag, eventually):
    a, _ = mesh
    history, of_one = tag.history(at="publisher"), tag.history(publisher=tag.history().latest().publisher)
    a.session.close()
    a.kill()
    with pytest.raises((ringcast.BrokenError, ringcast.Empty)):  # noticed already, or not
        history.latest()
    eventually(lambda: not tag.publishers(left=True))
    with pytest.raises(ringcast.Empty):
        history.latest()
    with pytest.raises(ringcast.BrokenError, match="gone"):
        of_one.latest()


def test_a_daemon_without_a_network(session):
    tag = session.tag(TAG, codec="json")
    pub = tag.publisher()
    for i in range(10):
        pub.send(i)
    assert tag.history(at="publisher").latest().data == 9
    assert [msg.data for msg in tag.history(every=4).since(0)] == [0, 4, 8]
    with pytest.raises(ringcast.BrokenError, match="no network"):
        tag.history(at="node:attic").latest()


def test_how_stale_it_may_be(tag, pub):
    history = tag.history()
    with pytest.raises(ringcast.HistoryError, match="nothing was pulled"):
        history.staleness_s()
    times = [msg.sent_ns for msg in history.since(0)]
    gap_ns = max(later - earlier for earlier, later in itertools.pairwise(times))
    assert gap_ns / 1e9 < history.staleness_s() < 60


def test_a_history_that_was_closed(tag):
    with tag.history() as history:
        history.latest()
    with pytest.raises(ringcast.ClosedError):
        history.latest()


def test_a_history_whose_daemon_was_restarted(mesh, tag, pub, eventually):
    b = mesh[1]
    history = tag.history()
    b.kill()
    b.restart()
    eventually(lambda: b.here() == {"a", "b"} and b.knows(TAG))
    assert history.latest().data == 19


def test_from_the_command_line(mesh, tag, pub):
    def run(*arguments: str) -> str:
        return said_by_ringcast("pull", TAG, "--socket", mesh[1].daemon.socket_path, *arguments)

    assert json.loads(run("--json"))["value"] == 19
    assert json.loads(run("--json"))["node"] == "a"
    assert json.loads(run("--json", "--at", "node:a", "--seq", "14"))["value"] == 14
    assert [row["value"] for row in json.loads(run("--json", "--since", "0", "--every", "3"))] == [12, 15, 18]
    assert json.loads(run("--json", "--at", "publisher", "--publisher", f"a/{pub.info.id}"))["value"] == 19
