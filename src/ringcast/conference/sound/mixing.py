"""Mixing by adding, and the two ways of keeping the sum within range (paper 000, Figures 11 and 12).

Both add the centred samples of all streams first and divide once, towards zero: dividing each stream by itself, as the
paper's text has it, gives the same but for the bits that 8-bit samples cannot spare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringcast.conference.sound.blocks import Format, Samples

CLEAN_BLOCKS = 1


def added(form: Format, streams: Sequence[Samples]) -> Samples:
    total = np.zeros(form.frames, np.int32)
    for stream in streams:
        total += stream
    return total


def divided(total: Samples, by: int) -> Samples:
    """Towards zero, as integer division is in C."""
    shared: Samples = np.sign(total) * (np.abs(total) // by)
    return shared


class ByPublishers:
    """The first scheme: divide by the number of publishers, whether they speak or not. Nothing ever overflows."""

    name = "publishers"

    def __init__(self, form: Format) -> None:
        self._form = form
        self.divisor = 1

    def mix(self, streams: Sequence[Samples], publishers: int) -> Samples:
        # More streams than publishers are known of: somebody has just come.
        self.divisor = max(1, publishers, len(streams))
        return divided(added(self._form, streams), self.divisor)


class BySpeakers:
    """The second scheme: follow the number of speakers, R. A block that overflows at R is mixed again with R + 1 until
    it does not; after `CLEAN_BLOCKS` blocks in a row without overflow R is one less. So one who speaks alone is soon
    at full volume, and no sample ever wraps.
    """

    name = "speakers"

    def __init__(self, form: Format) -> None:
        self._form = form
        self._clean = 0
        self.divisor = 1
        """R, as it is for the next block."""
        self.overflows = 0
        """Blocks that had to be mixed again."""

    def mix(self, streams: Sequence[Samples], publishers: int = 0) -> Samples:
        total = added(self._form, streams)
        mixed = divided(total, self.divisor)
        if self._fits(mixed):
            self._clean += 1
            if self._clean >= CLEAN_BLOCKS:
                self._clean = 0
                self.divisor = max(1, self.divisor - 1)
            return mixed
        self._clean = 0
        self.overflows += 1
        while not self._fits(mixed):
            self.divisor += 1
            mixed = divided(total, self.divisor)
        return mixed

    def _fits(self, mixed: Samples) -> bool:
        return bool(mixed.min() >= self._form.low and mixed.max() <= self._form.high)


MIXERS: dict[str, type[ByPublishers] | type[BySpeakers]] = {kind.name: kind for kind in (ByPublishers, BySpeakers)}
