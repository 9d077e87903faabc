"""A participant's ears: speakers that come, talk, go and are of another format."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast.conference.ears import FORGET_SLOTS, Ears
from ringcast.conference.sound.blocks import TELEPHONE, WIDE, Block


def block(participant: int, number: int, value: int, *, silent: bool = False) -> Block:
    return Block(TELEPHONE, participant, number, silent, np.full(256, value, np.int32))


@pytest.mark.parametrize(("scheme", "heard"), [("speakers", 30), ("publishers", 10)])
def test_speakers_are_added_and_kept_in_range_as_the_scheme_says(scheme: str, heard: int) -> None:
    ears = Ears(TELEPHONE, scheme)
    ears.hear(block(1, 0, 10))
    ears.hear(block(2, 0, 20))
    assert set(ears.play(publishers=3)) == {heard}
    assert set(ears.play(publishers=3)) == {0}
    assert ears.received == {1: 1, 2: 1}


def test_who_left_is_forgotten_and_what_was_discarded_is_remembered() -> None:
    ears = Ears(TELEPHONE, max_s=1, max_t=2)
    for number in range(5):
        ears.hear(block(1, number, 5, silent=number % 2 == 0))
    before = ears.discarded()
    assert before["silence"] == 3
    for _ in range(FORGET_SLOTS + 1):
        ears.play(1)
    after = ears.discarded()
    assert {name: after[name] for name in ("silence", "talk", "late")} == {
        name: before[name] for name in ("silence", "talk", "late")
    }
    ears.hear(block(1, 0, 7))  # it is back, with a microphone that counts from the beginning
    assert set(ears.play(1)) == {7}


def test_blocks_of_another_format_are_counted_and_left_out() -> None:
    ears = Ears(TELEPHONE)
    ears.hear(Block(WIDE, 1, 0, False, np.zeros(512, np.int32)))
    assert ears.misfits == 1
    assert set(ears.play(1)) == {0}
