"""Who has the last word on a proxy's place, and whether the subscriber was overridden."""

from __future__ import annotations

import pytest

from ringcast.model.place import Decided, Placed, Setting, Wanted, decided

ALL, NODE, OWN = {"": Setting(at="node:x")}, {"b": Setting(at="node:y")}, {"b#3": Setting(at="node:z")}
PLACED = {"b#3": Placed("node:p", "because")}


@pytest.mark.parametrize(
    ("asked", "settings", "proxy", "placed", "expected"),
    [
        ("auto", {}, "", {}, Decided("publisher", "")),
        ("auto", {}, "", PLACED, Decided("node:p", "daemon", "", "because")),
        ("auto", {}, "node:t", PLACED, Decided("node:t", "tag")),
        ("subscriber", {}, "node:t", PLACED, Decided("subscriber", "subscriber")),
        ("subscriber", ALL, "node:t", PLACED, Decided("node:x", "setting", "subscriber")),
        ("node:x", ALL, "", {}, Decided("node:x", "setting")),
        ("auto", ALL | NODE, "", {}, Decided("node:y", "setting")),
        ("auto", ALL | NODE | OWN, "", {}, Decided("node:z", "subscriber setting")),
        ("auto", {"b#3": Setting(at="node:z", planned=True)} | ALL, "", PLACED, Decided("node:z", "plan")),
        ("auto", {"b#3": Setting(transport="tcp")} | ALL, "", {}, Decided("node:x", "setting")),
        ("auto", {"b#4": Setting(at="node:z"), "c": Setting(at="node:w")}, "", {}, Decided("publisher", "")),
    ],
)
def test_the_narrowest_word_of_the_highest(
    asked: str, settings: dict[str, Setting], proxy: str, placed: dict[str, Placed], expected: Decided
) -> None:
    assert decided(asked, "b", 3, settings, proxy, placed) == expected


def test_one_without_a_number_yet_is_any_of_its_node() -> None:
    assert decided("auto", "b", 0, ALL | NODE | OWN, "", PLACED).at == "node:y"


def test_what_a_proxy_has_to_do() -> None:
    assert not Wanted().scales
    assert all(wanted.scales for wanted in (Wanted(every=2), Wanted(rate_hz=1.0), Wanted(size=(1, 1))))
