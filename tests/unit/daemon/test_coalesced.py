"""Work that many ask for."""

from __future__ import annotations

import asyncio

import pytest

from ringcast.daemon.coalesced import Coalesced


class Loop:
    """A loop whose clock a test moves, and that runs what is due when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, object]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: object) -> object:
        self.due.append((when, call))
        return self

    def cancel(self) -> None:
        self.due.clear()

    def run(self) -> None:
        ready = [call for when, call in self.due if when <= self.now]
        self.due = [(when, call) for when, call in self.due if when > self.now]
        for call in ready:
            call()  # type: ignore[operator]


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made)
    return made


def test_it_is_done_once_for_all_and_takes_half_of_the_time(loop: Loop) -> None:
    done = []

    def work() -> None:
        done.append(loop.now)
        loop.now += 2.0

    asked = Coalesced(work)
    for _ in range(1000):
        asked.soon()
    loop.run()
    assert done == [100.0]
    asked.soon()  # at 102
    loop.run()
    loop.now = 103.9
    loop.run()
    assert done == [100.0], "it rests as long as it took"
    loop.now = 104.0
    loop.run()
    assert done == [100.0, 104.0]
    asked.soon()
    asked.close()
    loop.now = 200.0
    loop.run()
    assert len(done) == 2


def test_one_who_asks_while_it_is_done_is_not_forgotten(loop: Loop) -> None:
    done = []

    def work() -> None:
        done.append(loop.now)
        if len(done) == 1:
            asked.soon()

    asked = Coalesced(work)
    asked.soon()
    loop.run()
    loop.run()
    assert len(done) == 2
