"""Places in publishers' rings that are kept for nodes whose reliable channel ended and is expected again.

Invariant: a place is given up when its stream has a channel again, or after PLACE_S; until then the publisher's ring
overwrites nothing that the node has not got.
"""

from __future__ import annotations

import asyncio
import logging

from ringcast.daemon.rings.ring import Hold
from ringcast.daemon.streams.interface import HeldSource
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PLACE_S = 5.0
"""How long the publisher's ring keeps unsent messages for a node that went or has to open its channel again."""


class Places:
    """A stream is known by its node and its publisher's incarnation."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], list[Hold]] = {}

    def keep(self, node: str, incarnation: int, source: HeldSource) -> None:
        try:
            place = source.keep_place()
        except RingcastError as exc:  # no slot is free: what is overwritten meanwhile is lost, and counted
            logger.debug("no place is kept for node %s: %s", node, exc)
            return
        if place is not None:
            self._places.setdefault((node, incarnation), []).append(place)
            asyncio.get_running_loop().call_later(PLACE_S, self.give_up, node, incarnation, place)

    def give_up(self, node: str, incarnation: int, place: Hold | None = None) -> None:
        """That one, or any of a stream that has a channel again."""
        places = self._places.get((node, incarnation), [])
        if places and (place is None or place in places):
            place = places[0] if place is None else place
            places.remove(place)
            place.close()
        if not places:
            self._places.pop((node, incarnation), None)

    def close(self) -> None:
        for places in self._places.values():
            for place in places:
                place.close()
        self._places.clear()
