"""Silence and talk (paper 000, section 4.1, Figure 13).

A block is talk when the mean of its samples' absolute values is greater than a threshold. The threshold is in steps of
8 bits, whatever the format; 1 was enough for the paper's authors, and a noisy room takes more.
"""

from __future__ import annotations

import numpy as np

from ringcast.conference.sound.blocks import Format, Samples

THRESHOLD = 1.0


def level(form: Format, samples: Samples) -> float:
    """The mean absolute value, in steps of 8 bits: 0 to 128."""
    return float(np.abs(samples).sum()) / (len(samples) << (form.bits - 8))


def is_silent(form: Format, samples: Samples, threshold: float = THRESHOLD) -> bool:
    return level(form, samples) <= threshold
