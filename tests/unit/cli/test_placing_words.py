"""`ringcast channels --why`: where a proxy sits, by whose word, and whom that overrides."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.cli.parts.placing import words
from ringcast.control.placing import SubscriberPlace
from ringcast.control.status import ChannelChoice, ChannelStatus
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


def test_candidates_are_listed_with_what_is_predicted_in_its_unit() -> None:
    def line(**more: Any) -> str:
        choice = ChannelChoice(
            asked="auto:bandwidth", transport="multicast", since_ns=0, why="", by="the rule", environment="3 receivers",
            candidates=[("multicast", 1.0), ("multicast+nak", 1.25)], **more,
        )  # fmt: skip
        row = ChannelStatus(
            direction="in", node="b", tag="cam", incarnation=1, every=1, transport="multicast", reliable=False,
            messages=1, bytes=1, lost=0, counters={}, choices=[choice],
        )  # fmt: skip
        (told,) = words.explained([row])
        return told

    def told(**more: Any) -> str:
        return line(**more).partition("times the best: ")[2]

    assert (
        told(values=[800.0, 1234567.0], unit="B/s") == "multicast (800 B/s, 1.00); multicast+nak (1,234,567 B/s, 1.25)"
    )
    assert "; by the rule; predicted" in line()
    assert "; pinned to ack; it would be chosen by the rule; predicted" in line(pinned="ack")
    assert told() == "multicast (1.00); multicast+nak (1.25)", "of an older daemon"
