import pytest

from ringcast import _core
from ringcast.client.ring_following import check_reliable, first_message
from ringcast.errors import QosMismatch
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
