"""What is known of a tag that this node chooses for: what those meet for whom the same is chosen. Pure.

Invariant: of receivers for whom something else is chosen, or for whom something is pinned, nothing counts here.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.adapt.deciding import Deciding
from ringcast.adapt.environment import Environment, Surroundings
from ringcast.adapt.ranking import Ranking
from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import Heard
from ringcast.daemon.choosing.wishes import Asked, of_nodes

BESIDES = ""
"""In place of a key, where nobody asked."""


class Collected(NamedTuple):
    """What nodes answered of a tag, and when they did. Those that are `silent` were asked and did not answer."""

    answers: list[Heard]
    at_s: dict[str, float]
    silent: set[str]


class Way:
    """What those meet for whom the same is chosen, and how it is chosen for them."""

    def __init__(self) -> None:
        self.surroundings = Surroundings()
        self.deciding = Deciding()
        self.ranked: tuple[Wish, Environment, Ranking] | None = None


class Known:
    """What is known of a tag that this node chooses for, by `choice_key`."""

    def __init__(self) -> None:
        self.ways: dict[str, Way] = {}

    def look(self, heard: Collected, asked: dict[str, Asked], now_s: float) -> None:
        keys = list(asked) or [BESIDES]
        self.ways = {key: self.ways.get(key) or Way() for key in keys}
        for key, way in self.ways.items():
            of = of_nodes(heard.answers, asked[key].nodes) if key in asked else heard.answers
            way.surroundings.look(now_s, of, heard.at_s, heard.silent)

    def line_is(self, one: Heard) -> None:
        for way in self.ways.values():
            way.surroundings.line_is(one)

    @property
    def is_relieved(self) -> bool:
        return any(way.deciding.relieved for way in self.ways.values())

    @property
    def is_busy(self) -> bool:
        return any(way.surroundings.is_busy for way in self.ways.values())

    @property
    def wavers(self) -> bool:
        return any(way.deciding.wavers for way in self.ways.values())

    @property
    def line(self) -> float:
        """Bytes per second that are left of the line that has the least; 0 where none is known."""
        return min((line for way in self.ways.values() if (line := way.surroundings.line())), default=0.0)
