"""A history that declares how often it pulls, and how old what it gets may be (docs/admission.md)."""

from __future__ import annotations

import math
import weakref
from typing import Any

from ringcast.client.attachment import Attachment


def check_pulls(period_s: float | None, max_age_s: float | None) -> None:
    """Raises ValueError."""
    for name, value in (("period_s", period_s), ("max_age_s", max_age_s)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is seconds above 0, not {value!r}")
    if max_age_s is not None and period_s is None:
        raise ValueError("max_age_s needs period_s: how often this history is going to pull")


def declare_pulls(
    attachment: Attachment, history: object, tag: str, at: str, period_s: float, max_age_s: float | None
) -> weakref.finalize[Any, Any]:
    """Until what is returned is called, or the history is forgotten. Raises AdmissionRefused, and as `Connection.call`
    does."""
    number = attachment.registry.hold(tag, at, 0, 1, period_s, max_age_s or 0.0)
    ending = weakref.finalize(history, attachment.registry.let_go, number)
    ending.atexit = False
    return ending
