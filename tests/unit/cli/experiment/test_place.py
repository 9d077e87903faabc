"""`ringcast place`: what it prints, draws and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringcast.cli.program import main

EXAMPLES = Path(__file__).parents[4] / "examples" / "placement"
STAR = EXAMPLES / "star.toml"


@pytest.mark.parametrize("name", ["star", "vbns", "tree", "plant"])
def test_examples_have_a_plan(name, capsys):
    assert main(["place", str(EXAMPLES / f"{name}.toml")]) == 0
    said = capsys.readouterr().out
    assert said.index("Streams") < said.index("Compared")
    assert "all at the publisher" in said
    assert "all at the subscriber" in said


def test_json_has_the_plan_and_nothing_else(capsys):
    assert main(["place", str(STAR), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["feasible"] is True
    assert document["cost"] == pytest.approx(2 * 1000 + 2 * 1000 / 3)
    assert document["gap"] == 0
    assert [(one["tag"], one["subscriber"], one["proxy"], one["path"]) for one in document["streams"]] == [
        ("star", "subscriber 1", "5", ["1", "5", "4"]),
        ("star", "subscriber 2", "5", ["1", "5", "3"]),
    ]
    assert [one["delay_s"] for one in document["streams"]] == pytest.approx([0.4, 0.4])
    assert [(one["a"], one["b"]) for one in document["links"]] == [(str(i), "5") for i in range(1, 5)]
    assert [one["load"] for one in document["links"]] == pytest.approx([2000, 0, 1000 / 3, 1000 / 3])
    assert [one["name"] for one in document["nodes"]] == list("12345")
    assert document["reasons"] == []


def test_the_vbns_moves_with_its_bound(tmp_path, capsys):
    text = (EXAMPLES / "vbns.toml").read_text()
    changed = text.replace("bandwidth = 5000, ", "").replace("deadline_s = 3.0", "deadline_s = 1.5")
    assert changed.count("deadline_s = 1.5") == 2  # the comment says so
    path = tmp_path / "vbns.toml"
    path.write_text(changed)
    assert main(["place", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["streams"][0]["proxy"] == "Denver"


def test_it_draws(tmp_path, capsys):
    drawn = tmp_path / "star.svg"
    assert main(["place", str(STAR), "--svg", str(drawn)]) == 0
    assert drawn.read_text().startswith("<svg ")
    assert str(drawn) in capsys.readouterr().err


def test_that_nothing_fits_is_an_answer(tmp_path, capsys):
    path = tmp_path / "tight.toml"
    path.write_text(STAR.read_text().replace("deadline_s = 0.4", "deadline_s = 0.1"))
    assert main(["place", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("No plan fits.\n- subscriber 'subscriber 1' of tag 'star'")
    assert "would fit: a deadline of 0.2 s" in said
    assert main(["place", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes = [", "not TOML"),
        ('nodes = [{name = "a"}]\ndemands = []\nlnks = []', "lnks: there is no such field; did you mean 'links'?"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, capsys, text, words):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert main(["place", str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert words in said.err
    assert str(path) in said.err


def test_no_file_and_no_place_to_draw(tmp_path, capsys):
    assert main(["place", str(tmp_path / "none.toml")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert main(["place", str(STAR), "--svg", str(tmp_path / "no" / "x.svg")]) == 1
    assert "cannot be written" in capsys.readouterr().err
