import os

import pytest

from ringcast.client.pending import Pending
from ringcast.control.answers import Done, Refused, TagListing
from ringcast.control.descriptor import Descriptor
from ringcast.errors import DaemonUnavailable, ResourceLimit, UnknownTag


@pytest.fixture
def pending():
    return Pending()


@pytest.fixture
def orphans():
    return []


def test_each_request_has_its_own_number_and_answer(pending, orphans):
    (a, first), (b, second) = pending.add(None), pending.add(None)
    assert a != b
    pending.answered(Done(id=b), orphans.append)
    assert (first.finished.is_set(), second.finished.is_set()) == (False, True)
    assert second.answers == [Done(id=b)]


def test_pages_are_collected_until_the_last(pending, orphans):
    number, waiting = pending.add(None)
    for more in (True, False, False):
        pending.answered(TagListing(id=number, rows=[], more=more), orphans.append)
    assert [page.more for page in waiting.answers] == [True, False]


def test_what_is_to_follow_has_run_when_the_asker_wakes(pending, orphans):
    seen = []
    number, waiting = pending.add(lambda answer: seen.append((answer, waiting.finished.is_set())))
    pending.answered(Done(id=number), orphans.append)
    assert seen == [(Done(id=number), False)]
    assert waiting.finished.is_set()


def test_refusals_and_failures_are_the_askers(pending, orphans):
    number, refused = pending.add(None)
    pending.answered(Refused(id=number, error="UnknownTag", fields={"name": "a"}), orphans.append)
    assert isinstance(refused.error, UnknownTag)
    number, failing = pending.add(lambda _: 1 / 0)
    pending.answered(Done(id=number), orphans.append)
    assert isinstance(failing.error, ZeroDivisionError)
    assert failing.finished.is_set()


def test_an_answer_to_somebody_who_left_is_an_orphan(pending, orphans):
    number, waiting = pending.add(lambda _: pytest.fail("nobody wants this"))
    waiting.orphan = True
    pending.answered(Done(id=number), orphans.append)
    assert orphans == [Done(id=number)]


def test_an_answer_to_nothing_is_ignored(pending, orphans):
    number, waiting = pending.add(None)
    pending.discard(number)
    pending.answered(Done(id=number), orphans.append)
    pending.answered(Done(id=99), orphans.append)
    assert orphans == []
    assert not waiting.finished.is_set()


def test_when_no_more_answers_come_everybody_is_told(pending, orphans):
    waits = [pending.add(None)[1] for _ in range(3)]
    pending.fail(DaemonUnavailable("/s", "gone"))
    assert all(isinstance(waiting.error, DaemonUnavailable) and waiting.finished.is_set() for waiting in waits)


def test_descriptors_belong_to_whoever_asked(pending, orphans):
    ours, theirs = os.pipe()
    number, waiting = pending.add(None)
    pending.answered(Done(id=number), orphans.append, [Descriptor(theirs)])
    assert [fd.fileno() for fd in waiting.fds] == [theirs]
    del waiting
    assert os.read(ours, 1) == b""  # closed with the last reference
    os.close(ours)


def test_no_room_for_descriptors_is_the_askers_error(pending, orphans):
    number, waiting = pending.add(None)
    pending.answered(Done(id=number), orphans.append, [], ResourceLimit("what", "remedy"))
    assert isinstance(waiting.error, ResourceLimit)
