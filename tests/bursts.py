"""What receivers count on a line that is good or bad for a while (Gilbert and Elliott)."""

from __future__ import annotations

import random


def bursts(share: float, burst: float, packets: int, messages: int, seed: int = 1) -> tuple[int, int, int]:
    """Messages that a line lost that is good or bad for a while, in how many runs, and how many packets came: each
    message is followed by others, `packets` in all."""
    chance = random.Random(seed)
    leave, enter = 1 / burst, share / burst / (1 - share)
    bad = before = False
    skipped = gaps = heard = 0
    for number in range(messages * packets):
        bad = chance.random() >= leave if bad else chance.random() < enter
        heard += not bad
        if number % packets == 0:
            skipped += bad
            gaps += bad and not before
            before = bad
    return skipped, gaps, heard
