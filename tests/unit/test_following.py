import pytest

from ringcast import _core
from ringcast.errors import QosMismatch
from ringcast.following import check_reliable, first_message, sent_since
from ringcast.tag import TagAttributes


@pytest.mark.parametrize(
    ("start", "first"),
    [("new", _core.START_NEW), ("latest", _core.START_LATEST), ("earliest", _core.START_EARLIEST), (0, 0), (7, 7)],
)
def test_where_a_subscription_begins(start, first):
    assert first_message(start) == first


@pytest.mark.parametrize("start", ["newest", -1, True, 1.5, None])
def test_a_start_that_is_none_is_refused(start):
    with pytest.raises(ValueError, match="start is"):
        first_message(start)


def test_a_tag_that_waits_for_nobody_has_no_reliable_readers():
    check_reliable("a", TagAttributes(max_wait_s=0.1))
    with pytest.raises(QosMismatch, match="max_wait_s=0"):
        check_reliable("a", TagAttributes(max_wait_s=0))


@pytest.fixture
def ring():
    writer = _core.RingWriter(depth=8, capacity_bytes=4096)
    history = _core.RingHistory()
    history.attach(
        writer.ring_fd, depth=writer.depth, capacity_bytes=writer.capacity_bytes, incarnation=writer.incarnation
    )
    yield writer, history
    history.close()
    writer.close()


def test_the_first_message_since_a_moment_is_found(ring):
    writer, history = ring
    for i in range(20):
        writer.send(b"%d" % i)
    times = {seq: history.at(seq).sent_ns for seq in range(12, 20)}
    for moment in times.values():
        oldest, first = sent_since(history, moment)
        assert oldest == 12
        assert first == min(seq for seq, sent in times.items() if sent >= moment)
    assert sent_since(history, times[19] + 1) == (12, 20)
    assert sent_since(history, 0) == (12, 12)


def test_an_empty_ring_is_read_from_its_beginning(ring):
    assert sent_since(ring[1], 0) == (0, 0)
