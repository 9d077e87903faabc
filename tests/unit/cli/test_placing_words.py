"""`ringcast channels --why`: where a proxy sits, by whose word, and whom that overrides."""

from __future__ import annotations

import pytest

from ringcast.cli.parts.placing import words
from ringcast.control.placing import SubscriberPlace
from ringcast.model.place import Wanted


def one(by: str, **fields: str) -> SubscriberPlace:
    wanted = Wanted(every=4, size=(640, 480))
    return SubscriberPlace(tag="cam", node="b", id=3, wanted=wanted, at="node:c", by=by, keeper="a", **fields)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (one("setting"), "an administrator set it"),
        (
            one("subscriber setting", overrides="publisher"),
            "an administrator set it for this subscriber, though its subscriber asked for at='publisher'",
        ),
        (one("plan"), "a plan was applied ('ringcast place --live --apply')"),
        (one("subscriber"), "its subscriber asked for it"),
        (one("tag"), "the tag's attribute 'at' says so"),
        (one("daemon", why="it saves 30 %"), "node a keeps the tag and placed it: it saves 30 %"),
        (
            one(""),
            "nobody has decided yet: node a places it as soon as it knows how fast the tag's publishers send",
        ),
    ],
)
def test_a_sentence_for_everybody_who_may_decide(place: SubscriberPlace, reason: str) -> None:
    assert words.why(place) == f"cam, subscriber b#3 (every 4, 640x480): at node:c, because {reason}"
    assert words.document(place)["why"] == reason


def test_who_is_overridden() -> None:
    said = words.overridden(one("setting", overrides="subscriber"))
    assert said == "subscriber b#3 asked for at='subscriber' and is overridden: its proxy is at node:c"
