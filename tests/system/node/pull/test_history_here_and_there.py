"""One History, wherever the rings are: the same calls give the same messages and the same errors on the publisher's
node, on another node, and through the daemon of the publisher's node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.client.remote_history import RemoteHistory
from ringcast.client.rings.local_history import LocalHistory

DEPTH, COUNT = 8, 12
KINDS = {"in place": LocalHistory, "by the daemon": RemoteHistory, "from another node": RemoteHistory}


@pytest.fixture(params=KINDS)
def place(request: Any) -> str:
    found: str = request.param
    return found


@pytest.fixture
def scene(place: str, shared_mesh: Any, eventually: Callable[..., None]) -> tuple[ringcast.Tag[object], Any, Any]:
    """The tag as the reader has it, how it asks for a history, and the publisher: twelve were sent, eight are held."""
    a, b = shared_mesh(2)
    pub = a.session.tag("samples", codec="json", depth=DEPTH).publisher()
    eventually(lambda: b.knows("samples", 1))
    for number in range(COUNT):
        pub.send(number * 10)
    tag = (b if place == "from another node" else a).session.tag("samples", create=False)
    at = "publisher" if place == "by the daemon" else None
    return tag, lambda **how: tag.history(at=at, **how), pub


@pytest.fixture
def history(scene: Any, place: str) -> ringcast.History[Any]:
    found: ringcast.History[Any] = scene[1]()
    assert type(found) is KINDS[place]
    assert isinstance(found, ringcast.History)
    return found


def data(messages: list[ringcast.Message[Any]]) -> list[Any]:
    return [message.data for message in messages]


def test_by_number(history: ringcast.History[Any]) -> None:
    assert history.bounds() == (4, 11)
    assert (history.latest().data, history.latest(back=3).data, history.latest(7).data) == (110, 80, 40)
    assert (history.at(4).data, history.at(11, copy=False).data) == (40, 110)
    assert data(history.range(5, 7)) == [50, 60, 70]
    assert data(history.since(9)) == [90, 100, 110]
    assert history.range(7, 5) == []


def test_what_is_gone_is_counted(history: ringcast.History[Any]) -> None:
    found = history.since(2)
    assert [(message.seq, message.lost) for message in found[:2]] == [(4, 2), (5, 0)]


def test_by_time(history: ringcast.History[Any]) -> None:
    sent = history.since(0)
    assert history.before(sent[3].sent_ns).seq == sent[3].seq
    assert data(history.between(sent[1].sent_ns, sent[4].sent_ns)) == data(sent[1:5])
    assert history.between(0, 1) == []
    with pytest.raises(ringcast.HistoryError):
        history.before(1)


def test_a_message_says_where_it_is_from(history: ringcast.History[Any], scene: Any) -> None:
    message = history.at(6)
    assert (message.tag, message.seq, message.publisher) == ("samples", 6, scene[2].info)
    assert message.event_ns == message.sent_ns <= message.received_ns
    assert message.valid


def test_what_is_not_held(history: ringcast.History[Any]) -> None:
    with pytest.raises(ringcast.Overwritten):
        history.at(3)
    with pytest.raises(ringcast.NotYet):
        history.at(12)
    with pytest.raises(ringcast.HistoryError):
        history.latest(back=8)


def test_what_is_no_number(history: ringcast.History[Any]) -> None:
    for call in (history.at, history.latest, history.before, history.since):
        with pytest.raises(TypeError):
            call("one")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sent_ns"):
        history.before(-1)


def test_parts_of_it(scene: Any) -> None:
    _, history, pub = scene
    with history(depth=3) as newest:
        assert newest.bounds() == (9, 11)
        assert data(newest.since(0)) == [90, 100, 110]
    with history(publisher=pub.info) as one:
        assert one.at(5).data == 50


def test_how_stale(history: ringcast.History[Any], scene: Any, eventually: Callable[..., None]) -> None:
    history.latest()
    assert 0 < history.staleness_s() < float("inf")
    assert history.unanswered == ()
    scene[2].close()

    def left() -> bool:
        history.latest()
        return history.staleness_s() == float("inf")

    eventually(left)


def test_it_ends(history: ringcast.History[Any]) -> None:
    assert not history.closed
    with history:
        pass
    history.close()
    assert history.closed
    assert history.tag.name == "samples"
    for call in (history.latest, history.bounds, lambda: history.at(5), lambda: history.since(0)):
        with pytest.raises(ringcast.ClosedError):
            call()
