"""How much of an MPEG stream can be shown when frames are missing (paper 004, Figure 8). Pure.

A P frame needs the I or P frame before it, a B frame those before and after it. So one lost I frame spoils the whole
group of pictures and the B frames that lean on it from before. The figure itself is a drawing that the text does not
have; the pattern below is the common one of fifteen frames with two B frames between.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

GROUP_OF_PICTURES = "IBBPBBPBBPBBPBB"


def usable_frames(received: npt.NDArray[np.bool_], pattern: str = GROUP_OF_PICTURES) -> npt.NDArray[np.bool_]:
    """Which frames can be shown; frame i is of kind pattern[i % len(pattern)], in the order of display.

    `received` may have several rows, one per receiver. Raises ValueError for a pattern that is not one I, then P and B.
    """
    if not pattern.startswith("I") or set(pattern[1:]) - set("PB"):
        raise ValueError(f"{pattern!r} is no group of pictures: it is one I, then P and B")
    rows = np.atleast_2d(received)
    count, frames, size = *rows.shape, len(pattern)
    # What was never sent is not missing: the last B frames lean on the one before alone.
    padded = np.ones((count, -(-frames // size) * size), dtype=np.bool_)
    padded[:, :frames] = rows
    groups = padded.reshape(count, -1, size)
    anchors = [place for place in range(size) if pattern[place] != "B"]
    good = np.logical_and.accumulate(groups[:, :, anchors], axis=2)
    next_intra = np.ones((count, groups.shape[1], 1), dtype=np.bool_)
    next_intra[:, :-1, 0] = good[:, 1:, 0]
    following = np.concatenate([good[:, :, 1:], next_intra], axis=2)
    usable = np.empty_like(groups)
    for place in range(size):
        before = max(number for number, anchor in enumerate(anchors) if anchor <= place)
        whole = good[:, :, before]
        usable[:, :, place] = whole if place in anchors else groups[:, :, place] & whole & following[:, :, before]
    return usable.reshape(count, -1)[:, :frames].reshape(np.shape(received))


def usable_share(received: float, pattern: str = GROUP_OF_PICTURES) -> float:
    """Of frames that each come with that probability, whatever the others do. What is needed of a group: all anchors
    up to the frame, the frame itself, and for a B frame the next anchor."""
    shares, anchors = [], 0
    for kind in pattern:
        anchors += kind != "B"
        shares.append(received ** (anchors if kind != "B" else anchors + 2))
    return sum(shares) / len(shares)
