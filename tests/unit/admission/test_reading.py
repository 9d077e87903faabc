"""Files: what they may say, and one sentence with the line and the field for what they may not."""

from __future__ import annotations

import json
import tomllib

import pytest

from ringcast.admission import AdmissionError
from ringcast.admission.reading import read

GOOD = """\
nodes = [{name = "a", cores = 2, blocking_s = 5e-5}, {name = "b"}]
links = [{a = "a", b = "b", bandwidth = 12.5e6, latency_s = 1e-4, losses = 1}]

[costs]
publish = {fixed_s = 5e-6, per_byte_s = 1e-10}

[[streams]]
tag = "x"
node = "a"
period_s = 1
bytes = 1000
subscribers = [{name = "s", node = "b", deadline_s = 0.5, every = 2, at = "subscriber"}]
pulls = [{name = "p", node = "b", period_s = 1, max_age_s = 3}]

[[tasks]]
name = "o"
node = "b"
period_s = 0.01
compute_s = 0.001
"""


def test_toml_and_json_say_the_same():
    read_toml = read(GOOD, toml=True)
    assert read_toml == read(json.dumps(tomllib.loads(GOOD)), toml=False)
    assert read_toml.nodes[0].cores == 2
    assert read_toml.streams[0].subscribers[0].every == 2
    assert read_toml.streams[0].transport == "nak"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("period_s = 1\nbytes", "perod_s = 1\nbytes", r"line 10, streams\[0\].perod_s: .*did you mean 'period_s'"),
        ("period_s = 1\nbytes", "bytes", r"line 7, streams\[0\]: .*period_s"),
        ("cores = 2", "cores = 0", r"line 1, nodes\[0\].cores: .*>= 1"),
        ("bytes = 1000", 'bytes = "1k"', r"line 11, streams\[0\].bytes: expected `float`, got `str`"),
        ("bytes = 1000", "bytes = inf", r"line 11, streams\[0\].bytes: is inf"),
        ("bytes = 1000", "bytes = nan", r"line 11, streams\[0\].bytes: .*"),
        ('name = "s", node = "b"', 'name = "s", node = "B2"', r"line 12, .*\[0\].node: there is no node 'B2'"),
        ('at = "subscriber"', 'at = "there"', r"line 12, .*at: is 'there'; it is 'publisher', 'subscriber'"),
        ('tag = "x"', 'tag = "x"\ntransport = "nack"', r"line 9, streams\[0\].transport: .*nack"),
        ('{name = "b"}]', '{name = "a"}]', r"line 1, nodes\[1\].name: 'a' is there twice"),
        ('b = "b", bandwidth', 'b = "a", bandwidth', r"line 2, links\[0\]: joins 'a' to itself"),
        ("[[tasks]]", "[[tasks]", r"line 15: this is not TOML"),
        ("blocking_s = 5e-5", "priority = 3", r"nodes\[0\].priority: there is no such field"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(old: str, new: str, says: str):
    assert old in GOOD
    with pytest.raises(AdmissionError, match=says):
        read(GOOD.replace(old, new, 1), toml=True)


def test_json_names_the_line_of_what_is_no_json():
    with pytest.raises(AdmissionError, match="line 2: this is not JSON"):
        read('{\n"nodes": [,]}', toml=False)
