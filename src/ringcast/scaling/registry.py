"""Scalers by the codecs they understand. Ours and everybody else's are found the same way: by entry point."""

from __future__ import annotations

import logging
from functools import cache

from ringcast.errors import QosMismatch
from ringcast.scaling.interface import Scaler, Size

logger = logging.getLogger("ringcast")

GROUP = "ringcast.scalers"


@cache
def _by_codec() -> dict[str, Scaler]:
    """A codec claimed twice is the first one's by name; one that does not load is passed by, and said."""
    from importlib.metadata import entry_points  # takes a fifth of the time to import ringcast, and is seldom needed

    found: dict[str, Scaler] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            kind: type[Scaler] = point.load()
            scaler = kind()
            for codec in scaler.codecs:
                found.setdefault(codec, scaler)
        except Exception as exc:
            logger.warning("scaler %r of %r cannot be loaded: %s", point.name, point.value, exc)
    return found


def codecs() -> list[str]:
    """Those that can be scaled."""
    return sorted(_by_codec())


def scaler_for(codec: str, size: Size) -> Scaler:
    """Raises QosMismatch, which names the codecs that can be scaled."""
    scaler = _by_codec().get(codec)
    if scaler is None:
        raise QosMismatch(
            f"size={size}", f"no scaler understands codec {codec!r}, only {', '.join(codecs())}",
            "use a tag with one of those, install a scaler, or leave size out",
        )  # fmt: skip
    return scaler
