"""Files: what they may say, and one sentence with the line or the field for what they may not."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from pathlib import Path

import pytest

from ringcast.placement import Costs, Objective, PlacementError
from ringcast.placement.reading import read

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "placement").glob("*.toml"))

GOOD = {
    "nodes": [{"name": "a", "cpu": 0.5}, {"name": "b"}, {"name": "c"}],
    "links": [{"a": "a", "b": "b", "bandwidth": 1000, "latency_s": 0.001}, {"a": "b", "b": "c"}],
    "demands": [
        {
            "tag": "t", "publisher": "a", "period_s": 0.1, "bytes": 100,
            "subscribers": [{"name": "s", "node": "c", "every": 2, "scaled_bytes": 50, "deadline_s": 0.5}],
        }
    ],
    "costs": {"in_s": 1e-6, "out_s": 2e-6, "scale_s": 3e-6},
    "cost": {"bandwidth": 1, "cpu": 5},
    "charge": "sent",
    "max_proxies_per_tag": None,
}  # fmt: skip


def with_(path: str, value: object) -> str:
    """The good file as JSON, with one field changed; `...` removes it."""
    document = copy.deepcopy(GOOD)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = document
    for part in way:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return json.dumps(document)


def test_all_fields_of_a_file():
    problem = read(json.dumps(GOOD), toml=False)
    assert problem.nodes[0].cpu == 0.5
    assert problem.links[0].bandwidth == 1000
    assert problem.links[0].latency_s == 0.001
    (demand,) = problem.demands
    assert (demand.tag, demand.publisher, demand.period_s, demand.bytes) == ("t", "a", 0.1, 100)
    (one,) = demand.subscribers
    assert (one.name, one.node, one.every, one.scaled_bytes, one.deadline_s) == ("s", "c", 2, 50, 0.5)
    assert problem.costs == Costs(1e-6, 2e-6, 3e-6)
    assert problem.objective == Objective(1, 5)
    assert problem.charge == "sent"
    assert problem.max_proxies_per_tag is None


def test_what_is_left_out():
    document = {
        "nodes": [{"name": "a"}, {"name": "b"}],
        "links": [{"a": "a", "b": "b"}],
        "demands": [
            {"tag": "t", "publisher": "a", "period_s": 1, "bytes": 1, "subscribers": [{"name": "s", "node": "b"}]}
        ],
    }
    problem = read(json.dumps(document), toml=False)
    assert problem.nodes[0].cpu == problem.links[0].bandwidth == math.inf
    assert problem.links[0].latency_s == 0
    (one,) = problem.demands[0].subscribers
    assert (one.every, one.scaled_bytes, one.deadline_s) == (1, None, math.inf)
    assert problem.objective == Objective(1, 0)
    assert problem.charge == "unicast"


@pytest.mark.parametrize(("said", "meant"), [("bandwidth", Objective(1, 0)), ("cpu", Objective(0, 1))])
def test_the_cost_as_a_word(said, meant):
    assert read(with_("cost", said), toml=False).objective == meant


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_say_the_same_as_json(path):
    text = path.read_text()
    assert read(text, toml=True) == read(json.dumps(tomllib.loads(text)), toml=False)


def test_there_are_examples():
    assert [path.stem for path in EXAMPLES] == ["plant", "star", "tree", "vbns"]


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        ("links.1", ..., "links", "no way leads from 'a' to 'c'"),
        ("links.0.bandwidth", -1, "links[0].bandwidth", "is -1"),
        ("links.0.bandwidth", None, "links[0].bandwidth", "is null"),
        ("links.0.bandwidth", "fast", "links[0].bandwidth", "is 'fast'"),
        ("links.0.bandwidth", math.nan, "links[0].bandwidth", "is nan"),
        ("links.0.latency_s", -0.1, "links[0].latency_s", "is -0.1"),
        ("links.0.b", "d", "links[0].b", "there is no node 'd'"),
        ("links.0.b", "a", "links[0]", "to itself"),
        ("links.1", {"a": "b", "b": "a"}, "links[1]", "joined already by links[0]"),
        ("nodes.0.cpu", -0.5, "nodes[0].cpu", "is -0.5"),
        ("nodes.0.cpu", None, "nodes[0].cpu", "is null"),
        ("nodes.1.name", "a", "nodes[1].name", "'a' is there twice"),
        ("nodes.1.name", "", "nodes[1].name", "is empty"),
        ("nodes.1.name", ..., "nodes[1].name", "is missing"),
        ("nodes", [], "nodes", "there is no node"),
        ("nodes", 3, "nodes", "is 3"),
        ("nodes.0", "a", "nodes[0]", "is 'a'"),
        ("demands.0.subscribers.0.every", 2.5, "demands[0].subscribers[0].every", "is 2.5"),
        ("demands.0.subscribers.0.every", 0, "demands[0].subscribers[0].every", "is 0"),
        ("demands.0.subscribers.0.every", True, "demands[0].subscribers[0].every", "is True"),
        ("demands.0.subscribers.0.node", "bb", "demands[0].subscribers[0].node", "did you mean 'b'?"),
        ("demands.0.subscribers.0.deadline_s", 0, "demands[0].subscribers[0].deadline_s", "is 0"),
        ("demands.0.subscribers.0.scaled_bytes", -1, "demands[0].subscribers[0].scaled_bytes", "is -1"),
        ("demands.0.subscribers.0.evry", 2, "demands[0].subscribers[0].evry", "did you mean 'every'?"),
        ("demands.0.publisher", "z", "demands[0].publisher", "there is no node 'z'"),
        ("demands.0.period_s", 0, "demands[0].period_s", "is 0"),
        ("demands.0.period_s", ..., "demands[0].period_s", "is missing"),
        ("demands.0.bytes", -3, "demands[0].bytes", "is -3"),
        ("demands", ..., "demands", "is missing"),
        ("costs.in_s", -1, "costs.in_s", "is -1"),
        ("cost", "money", "cost", "is 'money'"),
        ("cost", {"bandwidth": 0}, "cost", "weighs nothing"),
        ("cost", {"bandwidth": -1}, "cost.bandwidth", "is -1"),
        ("charge", "broadcast", "charge", "is 'broadcast'"),
        ("max_proxies_per_tag", 0, "max_proxies_per_tag", "is 0"),
        ("max_proxies_per_tag", 1.5, "max_proxies_per_tag", "is 1.5"),
        ("demand", [], "demand", "did you mean 'demands'?"),
    ],
)
def test_a_sentence_that_names_the_field(path, value, field, words):
    with pytest.raises(PlacementError) as caught:
        read(with_(path, value), toml=False)
    assert caught.value.field == field
    assert words in caught.value.reason
    assert "\n" not in str(caught.value)


def test_names_twice():
    subscriber = {"name": "s", "node": "b"}
    with pytest.raises(PlacementError, match=r"demands\[0\].subscribers\[1\].name: 's' is there twice"):
        read(with_("demands.0.subscribers", [subscriber, subscriber]), toml=False)
    with pytest.raises(PlacementError, match=r"demands\[1\].tag: 't' is there twice"):
        read(with_("demands", GOOD["demands"] * 2), toml=False)


@pytest.mark.parametrize(
    ("text", "toml", "words"),
    [
        ('{"nodes": [\n{"name" "a"}]}', False, "not JSON: .*line 2"),
        ("", False, "not JSON: .*line 1"),
        ("nodes = [\n{name = }]", True, "not TOML: .*line 2"),
        ("[]", False, "is a list"),
    ],
)
def test_a_sentence_that_names_the_line(text, toml, words):
    with pytest.raises(PlacementError, match=words):
        read(text, toml=toml)
