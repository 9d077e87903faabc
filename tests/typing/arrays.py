"""As `program.py`, for arrays, whose own types have Any in them."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import ringcast
from ringcast.codec.audio import AudioBlock


def by_codec(session: ringcast.Session) -> None:
    assert_type(session.tag("a", codec="image", schema={"format": "png"}), ringcast.Tag[NDArray[np.generic]])
    pub = session.tag("a", codec="numpy").publisher()
    pub.send(np.zeros(3))
    pub.send("text")  # type: ignore[arg-type]
    assert_type(session.subscribe("a", codec="numpy").recv().data, NDArray[np.generic])
    assert_type(session.subscribe("a", codec="audio").recv().data, AudioBlock)
