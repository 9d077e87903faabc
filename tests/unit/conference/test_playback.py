"""A participant's playback: speakers that come, talk, go and are of another format."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast.conference.playback import FORGET_SLOTS, Playback
from ringcast.conference.sound.blocks import TELEPHONE, WIDE, Block


def block(participant: int, number: int, value: int, *, silent: bool = False) -> Block:
    return Block(TELEPHONE, participant, number, silent, np.full(256, value, np.int32))


@pytest.mark.parametrize(("scheme", "heard"), [("speakers", 30), ("publishers", 10)])
def test_speakers_are_added_and_kept_in_range_as_the_scheme_says(scheme: str, heard: int) -> None:
    playback = Playback(TELEPHONE, scheme)
    playback.hear(block(1, 0, 10))
    playback.hear(block(2, 0, 20))
    assert set(playback.play(publishers=3)) == {heard}
    assert set(playback.play(publishers=3)) == {0}
    assert playback.received == {1: 1, 2: 1}


def test_who_left_is_forgotten_and_what_was_discarded_is_remembered() -> None:
    playback = Playback(TELEPHONE, max_s=1, max_t=2)
    for number in range(5):
        playback.hear(block(1, number, 5, silent=number % 2 == 0))
    before = playback.discarded()
    assert before["silence"] == 3
    for _ in range(FORGET_SLOTS + 1):
        playback.play(1)
    after = playback.discarded()
    assert {name: after[name] for name in ("silence", "talk", "late")} == {
        name: before[name] for name in ("silence", "talk", "late")
    }
    playback.hear(block(1, 0, 7))  # it is back, with a microphone that counts from the beginning
    assert set(playback.play(1)) == {7}


def test_blocks_of_another_format_are_counted_and_left_out() -> None:
    playback = Playback(TELEPHONE)
    playback.hear(Block(WIDE, 1, 0, False, np.zeros(512, np.int32)))
    assert playback.misfits == 1
    assert set(playback.play(1)) == {0}
