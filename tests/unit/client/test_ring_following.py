import time

import pytest

from ringcast import _core
from ringcast.client.ring_following import RingFollowing, check_reliable, first_message
from ringcast.control.notices import RingUp
from ringcast.errors import QosMismatch
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes


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


class Reader:
    """Says what it was asked to do."""

    def __init__(self):
        self.incarnations, self.attached, self.detached = [], [], []

    def attach(self, *fds, **how):
        self.attached.append(how)

    def detach(self, ring, *, drain, end):
        self.detached.append((ring, end))


class Decoders:
    def of(self, *_):
        return None


def ring_up(age_ns, **how):
    info = PublisherInfo(id=1, node="a", tag="t", incarnation=7, pid=1, user="u", program="p")
    fields = {"born_after": True, "ring": 70, "next_seq": 50, "first_seq": 40} | how
    return RingUp(
        subscription=1, info=info, attributes=TagAttributes(), depth=8, capacity_bytes=64, age_ns=age_ns, **fields
    )


@pytest.mark.parametrize(
    ("age_ns", "how", "start"),
    [
        (0, {}, 0),  # it came after the subscription, which should have had everything
        (10**15, {}, _core.START_EARLIEST),
        (None, {}, _core.START_EARLIEST),
        (10**15, {"born_after": False}, 50),
        (0, {"born_after": False}, 50),
    ],
)
def test_where_counting_begins(age_ns, how, start):
    reader = Reader()
    following = RingFollowing(None, 1, "t", reader, start="new", decoders=Decoders())
    time.sleep(0.001)  # the subscription is older than what is new
    following.attach(ring_up(age_ns, **how), 3, 4)
    assert [(asked["start"], asked["first"]) for asked in reader.attached] == [(start, 40)]


def test_the_schedule_of_a_stream_counts_until_its_last_ring_is_gone():
    reader = Reader()  # kept: the subscription holds it weakly
    following = RingFollowing(None, 1, "t", reader, start="new", decoders=Decoders())
    following.attach(ring_up(None, priority="fifo:30"), 3, 4)
    following.attach(ring_up(None, ring=71, priority="fifo:20"), 3, 4)
    following.ring_down(70, None)  # it moved
    assert following.threads.sched == "fifo:19"
    following.ring_down(71, None)
    assert following.threads.sched == ""


def test_the_end_of_a_publisher_is_told_to_its_last_ring():
    reader = Reader()
    following = RingFollowing(None, 1, "t", reader, start="new", decoders=Decoders())
    following.attach(ring_up(None), 3, 4)
    following.attach(ring_up(None, ring=71), 3, 4)
    following.stream_ended(7, 99)
    following.stream_ended(8, 99)  # it never had anything of that one
    assert reader.detached == [(71, 99)]
