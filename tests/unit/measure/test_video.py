"""Usable frames against a definition written the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.measure.video import GROUP_OF_PICTURES, usable_frames, usable_share


def slowly(received: list[bool], pattern: str) -> list[bool]:
    kinds = [pattern[i % len(pattern)] for i in range(len(received))]
    usable = [False] * len(received)
    for i, kind in enumerate(kinds):
        if kind == "I":
            usable[i] = received[i]
        elif kind == "P":
            before = max(j for j in range(i) if kinds[j] != "B")
            usable[i] = received[i] and usable[before]
    for i, kind in enumerate(kinds):
        if kind == "B":
            before = max(j for j in range(i) if kinds[j] != "B")
            after = next((j for j in range(i, len(kinds)) if kinds[j] != "B"), None)
            usable[i] = received[i] and usable[before] and (after is None or usable[after])
    return usable


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.booleans(), min_size=1, max_size=70), st.sampled_from([GROUP_OF_PICTURES, "I", "IP", "IB", "IBP"]))
def test_dependencies(received: list[bool], pattern: str) -> None:
    assert usable_frames(np.array(received), pattern).tolist() == slowly(received, pattern)


def test_a_lost_intra_frame_spoils_its_group_and_the_frames_that_lean_on_it() -> None:
    received = np.ones((2, 45), dtype=np.bool_)
    received[1, 15] = False
    usable = usable_frames(received)
    assert usable[0].all()
    assert not usable[1, 13:30].any()
    assert usable[1, :13].all()
    assert usable[1, 30:].all()


@pytest.mark.parametrize("pattern", ["", "P", "IXB", "IPI"])
def test_no_group_of_pictures(pattern: str) -> None:
    with pytest.raises(ValueError, match="group of pictures"):
        usable_frames(np.ones(3, dtype=np.bool_), pattern)


@pytest.mark.parametrize("pattern", [GROUP_OF_PICTURES, "I", "IP", "IBP", "IPBBB"])
def test_how_many_are_usable_where_losses_are_independent(pattern: str) -> None:
    received = np.random.default_rng(5).random((200, 1_500)) < 0.97
    assert usable_share(0.97, pattern) == pytest.approx(usable_frames(received, pattern).mean(), abs=0.003)
    assert usable_share(1.0, pattern) == 1.0
