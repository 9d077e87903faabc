"""Who gives a value, and what a running daemon takes over."""

from __future__ import annotations

from ringcast.daemon.operate.config_file import defaults
from ringcast.daemon.operate.configuration import KEYS, read
from ringcast.daemon.operate.in_force import changed, resolve, rows, taken_over

TEXT = """\
name = "a"
mesh = "m"
log = "json"
[tags.x]
depth = 3
[[transports]]
tags = "x"
at = "publisher"
"""
FILE = read(TEXT, "f")


def test_flags_win_over_the_environment_over_the_file_over_defaults() -> None:
    settings = resolve(defaults(), FILE, {"socket": "/s", "mesh": "e"}, {"mesh": "flagged", "name": None})
    origins = {row.key: (row.value, row.origin) for row in rows(settings)}
    assert origins["name"] == ('"a"', "f:1")
    assert origins["mesh"] == ('"flagged"', "flag")
    assert origins["socket"] == ('"/s"', "environment")
    assert origins["scout"] == ("true", "default")
    assert origins['tags."x"'] == ("{depth = 3}", "f:4")
    assert origins["transports[0]"] == ('{tags = "x", at = "publisher"}', "f:6")


def test_rules_are_shown_with_their_lines() -> None:
    file = read("[[rules]]\nuser = '*'\nmay = 'pull'\ntags = 'a'\n[[rules]]\nnode='b'\nmay='set'\ntags='c'", "f")
    shown = {row.key: (row.value, row.origin) for row in rows(resolve(defaults(), file, {}, {}))}
    assert shown["rules[0]"] == ('{user = "*", may = ["pull"], tags = ["a"]}', "f:1")
    assert shown["rules[1]"] == ('{node = ["b"], may = ["set"], tags = ["c"]}', "f:5")


def test_every_key_has_a_default() -> None:
    assert set(defaults()) == set(KEYS)
    assert {row.origin for row in rows(resolve(defaults(), None, {}, {}))} == {"default"}


def test_what_cannot_be_changed_while_running_stays() -> None:
    old = resolve(defaults(), FILE, {}, {})
    new = resolve(defaults(), read('name = "b"\nlog = "text"\n[tags.x]\ndepth = 4', "g"), {}, {})
    assert changed(old, new) == (["log", "tags", "transports"], ["name", "mesh"])
    kept = taken_over(old, new)
    assert (kept.name, kept.mesh, kept.origins["mesh"]) == ("a", "m", "f:2")
    assert kept.values["log"] == "text"
    assert kept.tags == {"x": {"depth": 4}}
    assert kept.config == "g"
