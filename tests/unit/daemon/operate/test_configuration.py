"""What may stand in ringcast.toml; every mistake is a sentence with its line."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.daemon.operate.configuration import KEYS, Rule, check, read, settings_for
from ringcast.errors import BadConfiguration
from ringcast.model.place import Setting

WHOLE = """\
name = "edge1"
mesh = "team-a"
socket = "/run/ringcast/daemon.sock"
listen = ["0.0.0.0:7417", "[::1]:7417"]
peers = ["10.0.0.2"]
scout = false
metrics = "127.0.0.1"
metrics_rules = "/etc/ringcast/readers.toml"
identity = "/etc/ringcast/identity"
audit = "/var/log/ringcast.jsonl"
log = "json"
log_level = "info"

[limits]
memory = "1.5G"
lingering_rings = 10
lingering_rings_per_tag = 2
tag_lease_s = 3600
cpu_share = 0.5
sched_priority = 40
sched_share = 0.5
wake_latency = "20us"
link_rate = "100mbit"
link_share = 0.25
user_connections = 5
requests_per_s = 6
user_tags = 7
user_rings = 8
user_memory = "9K"

[clock]
source = "common"
probe_s = 0.5

[tags."lab/temperature"]
codec = "json"
schema = { type = "number" }
depth = 100
transport = "tcp"

[[transports]]
tags = "cam/**"
node = "tablet"
transport = "lateral+nak:r=4,c=3"
at = "node:edge1"
[[rules]]
user = "root"
may = "pull"
tags = "lab/**"
"""


def test_a_whole_file() -> None:
    file = read(WHOLE, "f")
    assert set(file.values) == set(KEYS)
    assert file.values["peers"] == ("10.0.0.2:7417",)
    assert file.values["metrics"] == "127.0.0.1:9417"
    assert file.values["limits.memory"] == 1536 * 1024 * 1024
    assert file.values["limits.wake_latency"] == 20
    assert file.values["limits.link_rate"] == 100_000_000
    assert file.values["tags"]["lab/temperature"]["depth"] == 100
    assert file.values["transports"][0].node == "tablet"
    assert file.place("limits", "memory") == "f:15"


def test_rules_are_read_with_names_as_numbers() -> None:
    text = """
[[rules]]
user = "root"
group = ["root", 7]
program = "/usr/bin/sensor"
may = ["publish", "create"]
tags = "lab/**"
[[rules]]
user = "*"
may = "pull"
tags = ["a", "b"]
[[rules]]
node = "*"
may = "subscribe"
tags = "c"
"""
    first, second, third = read(text, "f").values["rules"]
    assert (first.users, first.groups, first.programs) == ((0,), (0, 7), ("/usr/bin/sensor",))
    assert (first.may, first.tags) == (("publish", "create"), ("lab/**",))
    assert (second.users, second.nodes, second.tags) == ((), None, ("a", "b"))
    assert (third.users, third.nodes) == (None, ("*",))


def test_an_empty_file_says_nothing() -> None:
    assert read("", "f").values == {}


def test_a_transport_may_be_left_to_the_mesh() -> None:
    found = read(
        "[tags.x]\ntransport = 'auto:p99,loss=2%'\n[[transports]]\ntags = 'y'\ntransport = 'auto:relate2'", "f"
    ).values
    assert found["tags"]["x"]["transport"] == "auto:p99,loss=2%"
    assert found["transports"][0].transport == "auto:relate2"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('nam = "x"', 1, "there is no key 'nam'; did you mean 'name'?"),
        ('mesh = "a"\n\nname = 3', 3, "name must be the name of a node"),
        ('mesh = "a b"', 1, "mesh must be the name of a mesh"),
        ("[limits]\nmemory = true", 2, 'limits.memory must be a size such as "512M" or "2G", not true'),
        ("[limits]\nmemry = 1", 2, "did you mean 'limits.memory'?"),
        ("[clock]\nsource = 'sun'", 2, 'clock.source must be "own" or "common", not "sun"'),
        ("[clock]\nprobe_s = 0", 2, "clock.probe_s must be a number of seconds from 0.01 to 60, not 0"),
        ("limits = 3", 1, "there is no key 'limits'"),
        ('scout = "yes"', 1, 'scout must be true or false, not "yes"'),
        ('listen = "0.0.0.0:1"', 1, "listen must be a list of at most 8 addresses"),
        ('name = "a"\npeers = ["a:1", 3]', 2, "3 is not an address"),
        ('socket = "here"', 1, "socket must be a path that begins with /"),
        ('log = "xml"', 1, 'log must be "text" or "json", not "xml"'),
        ("tags = 3", 1, "tags must be tables"),
        ('[tags]\n"a//b" = {}', 2, "'a//b' is not a tag name"),
        ('[tags."@ringcast/x"]\ndepth = 1', 1, "daemons' own"),
        ("[tags.x]\ncodec = 'json'\ndepth = 0", 3, "tag 'x', depth = 0: depth must be a whole number"),
        ("[tags.x]\ndeph = 1", 2, "a tag has no such attribute"),
        ("[tags.x]\ntransport = 'pigeon'", 2, "pigeon"),
        ("[tags.x]\ntransport = 'auto:speed'", 2, "relate2, p99, deadline"),
        ("[[transports]]\ntags = 'a'", 1, "a rule needs"),
        ("[[transports]]\ntags = 'a'\ntransport='nak'\n[[transports]]\ntags = 'a*'", 5, "must be whole segments"),
        ("[[transports]]\ntags = 'a'\ntransport = 'pigeon'", 3, "pigeon"),
        ("[[transports]]\ntags = 'a'\nat = 'moon'", 3, "'publisher', 'subscriber'"),
        ("[[transports]]\ntags = 'a'\nproxy = 'publisher'", 3, "'proxy' is called 'at'"),
        ("[[transports]]\ntag = 'a'", 2, "did you mean 'tags'?"),
        ("rules = 3", 1, "rules must be tables that begin with [[rules]]"),
        ("[[rules]]\nmay = 'pull'\ntags = 'a'", 1, "for whom it is"),
        ("[[rules]]\nuser = 'root'\ntags = 'a'", 1, "a rule needs may"),
        ("[[rules]]\nuser = 'root'\nmay = 'pull'", 1, "a rule needs tags"),
        ("[[rules]]\nuser = 'root'\nmay = ['pul']\ntags = 'a'", 3, 'may must be "publish" or "subscribe"'),
        ("[[rules]]\nuser = 'no such one'\nmay = 'pull'\ntags = 'a'", 2, "there is no user 'no such one'"),
        ("[[rules]]\ngroup = 'no such one'\nmay = 'pull'\ntags = 'a'", 2, "there is no group 'no such one'"),
        ("[[rules]]\nuser = -1\nmay = 'pull'\ntags = 'a'", 2, "user must be a name, or a number from 0 on"),
        ("[[rules]]\nuser = []\nmay = 'pull'\ntags = 'a'", 2, "user is empty"),
        ("[[rules]]\nprogram = 'x'\nmay = 'pull'\ntags = 'a'", 2, "program must be the path of an executable"),
        ("[[rules]]\nnode = 'a b'\nmay = 'pull'\ntags = 'a'", 2, "node must be the name of a node"),
        ("[[rules]]\nnode = 'a'\nuser = 0\nmay = 'pull'\ntags = 'a'", 1, "is for nobody else"),
        ("[[rules]]\nuser = 0\nmay = 'pull'\n\ntags = ['a', 'b*']", 5, "must be whole segments"),
        ("[[rules]]\nuser = 0\nmay = 'pull'\ntag = 'a'", 4, "did you mean 'tags'?"),
        ('name = "a"\nmesh = ', 2, "this is not TOML"),
        ('name = "a"\nname = "b"', 2, "this is not TOML"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        read(text, "/etc/f.toml")
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"/etc/f.toml:{line}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"), [("name", "a b"), ("listen", ["x y"]), ("limits.memory", "much"), ("log_level", "loud")]
)
def test_flags_are_held_to_the_same(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^--flag must be|is not an address"):
        check(key, value, "--flag")


def test_the_first_rule_that_says_something_counts() -> None:
    rules = (
        Rule(tags="cam/front", transport="tcp"),
        Rule(tags="cam/**", transport="udp", at="subscriber"),
        Rule(tags="cam/**", node="tablet", transport="nak"),
        Rule(tags="lab/**", transport="nak"),
    )
    assert settings_for(rules, "cam/front") == {
        "": Setting(at="subscriber", transport="tcp"), "tablet": Setting(transport="nak")
    }  # fmt: skip
    assert settings_for(rules, "cam/back")[""] == Setting(at="subscriber", transport="udp")
    assert settings_for(rules, "other") == {}
