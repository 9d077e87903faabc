"""What a history of 0 to 19 shows wherever it is, when its ring holds the last 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ringcast

if TYPE_CHECKING:
    from ringcast.client.remote_history import RemoteHistory
    from ringcast.history import History
    from ringcast.publisher import Publisher


def check_by_age(history: History | RemoteHistory, publisher: Publisher) -> None:
    assert history.latest().data == 19
    assert history.latest(back=3).data == 16
    publisher.send(20)
    assert history.latest().data == 20


def check_by_number(history: History | RemoteHistory) -> None:
    assert history.bounds() == (12, 19)
    assert history.at(15).data == 15
    with pytest.raises(ringcast.Overwritten) as gone:
        history.at(11)
    assert (gone.value.seq, gone.value.oldest, gone.value.newest) == (11, 12, 19)
    with pytest.raises(ringcast.NotYet) as coming:
        history.at(20)
    assert (coming.value.seq, coming.value.newest) == (20, 19)


def check_by_range(history: History | RemoteHistory) -> None:
    assert [msg.data for msg in history.range(13, 15)] == [13, 14, 15]
    assert [msg.data for msg in history.since(17)] == [17, 18, 19]
    tail = history.since(10)
    assert [msg.data for msg in tail] == list(range(12, 20))
    assert [msg.lost for msg in tail] == [2, 0, 0, 0, 0, 0, 0, 0]
    assert history.since(20) == []
    assert history.range(15, 13) == []
