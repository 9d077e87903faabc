"""Pulling by send time: a history on the publishers' node and one on another node give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast import _core
from ringcast.client.remote_history import RemoteHistory
from ringcast.client.rings.local_history import LocalHistory

FIRST_NS = 1_000_000_000


@pytest.fixture(params=["local", "remote"])
def scene(request: Any, shared_mesh: Any, eventually: Callable[..., None]) -> tuple[Any, list[Any], list[Any]]:
    """A tag as the reader sees it, its two publishers, and what they sent, in the order of sending."""
    a, b = shared_mesh(2)
    tag = a.session.tag("words", codec="json")
    publishers = [tag.publisher(), a.session.tag("words", codec="json").publisher()]
    eventually(lambda: b.knows("words", 2))
    for number in range(12):
        publishers[number % 2].send(number)
    reader = a.session if request.param == "local" else b.session
    seen = reader.tag("words", create=False)
    histories = [a.session.tag("words").local_history(publisher=publisher) for publisher in publishers]
    sent = sorted((m for history in histories for m in history.range(0, 5)), key=lambda message: message.sent_ns)
    assert [message.data for message in sent] == list(range(12))
    return seen, publishers, sent


def test_the_kind_is_what_the_name_says(scene: Any, request: Any) -> None:
    kind = LocalHistory if "local" in request.node.name else RemoteHistory
    history = scene[0].history()
    assert type(history) is kind
    assert isinstance(history, ringcast.History)


def test_before_is_the_newest_by_then(scene: Any) -> None:
    tag, _, sent = scene
    with tag.history() as history:
        for message in sent:
            assert history.before(message.sent_ns).data == message.data
        assert history.before(_core.utc_ns()).data == 11
        found = history.before(sent[7].sent_ns - 1)
        assert (found.data, found.seq, found.publisher.incarnation) == (
            6, sent[6].seq, sent[6].publisher.incarnation
        )  # fmt: skip


def test_nothing_was_sent_by_then(scene: Any) -> None:
    tag, _, sent = scene
    with tag.history() as history:
        with pytest.raises(ringcast.HistoryError, match="nothing that is held was sent by"):
            history.before(sent[0].sent_ns - 1)
        assert history.between(FIRST_NS, sent[0].sent_ns - 1) == []


def test_between_has_both_ends_and_the_order_of_sending(scene: Any) -> None:
    tag, _, sent = scene
    with tag.history() as history:
        found = history.between(sent[3].sent_ns, sent[8].sent_ns)
        assert [(message.data, message.seq, message.lost) for message in found] == [
            (message.data, message.seq, 0) for message in sent[3:9]
        ]
        assert [message.data for message in history.between(FIRST_NS, _core.utc_ns())] == list(range(12))


def test_of_one_publisher_and_of_the_last_few(scene: Any) -> None:
    tag, publishers, sent = scene
    with tag.history(publisher=publishers[1].info, depth=2) as history:
        assert [message.data for message in history.between(FIRST_NS, _core.utc_ns())] == [9, 11]
        assert history.before(sent[10].sent_ns).data == 9
        with pytest.raises(ringcast.HistoryError):
            history.before(sent[8].sent_ns)


def test_numbers_that_are_none(scene: Any) -> None:
    with scene[0].history() as history:
        with pytest.raises(TypeError):
            history.before("now")
        with pytest.raises(ValueError, match="sent_ns"):
            history.before(-1)


def test_nobody_published(shared_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = shared_mesh(2)
    a.session.tag("silent")
    eventually(lambda: b.session.tags("silent"))
    for history in (a.session.tag("silent").local_history(), b.session.tag("silent").history(at="publisher")):
        with pytest.raises(ringcast.Empty):
            history.before(FIRST_NS)
