"""`ringcast admit`: what it prints, draws and refuses."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ringcast.admission.calibration import Calibration, Machine, save, this_machine
from ringcast.admission.model import Cost, Costs
from ringcast.cli.program import main

EXAMPLES = Path(__file__).parents[4] / "examples" / "admission"
UNCOSTED = """
nodes = [{name = "a"}]
[[streams]]
tag = "t"
node = "a"
period_s = 0.1
bytes = 64
subscribers = [{name = "s", node = "a", deadline_s = 0.01}]
"""


def test_an_admitted_system(capsys):
    assert main(["admit", str(EXAMPLES / "robot.toml")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Admitted.")
    assert "arm/camera to operator" in said
    assert "R recovery" in said


def test_a_refused_one_says_what_would_fit(capsys):
    assert main(["admit", str(EXAMPLES / "too_tight.toml")]) == 1
    said = capsys.readouterr().out
    assert "arm/camera to vision" in said.splitlines()[1]
    assert "missed by" in said
    assert "would fit: arm/camera: a deadline of" in said


def test_json_has_the_numbers_and_nothing_else(capsys):
    assert main(["admit", str(EXAMPLES / "too_tight.toml"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["admitted"] is False
    vision = next(one for one in document["streams"] if one["name"] == "vision")
    assert vision["over_s"] == pytest.approx(vision["bound_s"] - vision["limit_s"])
    assert sum(part["worst_s"] for part in vision["parts"]) == pytest.approx(vision["bound_s"])
    assert {fit["change"] for fit in document["fits"]} >= {"deadline_s", "bytes"}


def test_a_drawing_has_a_bar_for_everyone(tmp_path, capsys):
    target = tmp_path / "robot.svg"
    assert main(["admit", str(EXAMPLES / "robot.toml"), "--svg", str(target)]) == 0
    drawn = target.read_text()
    ElementTree.fromstring(drawn)
    for who in ("arm/joints to control", "arm/camera to operator"):
        assert who in drawn
    assert "receive, controller" in drawn


def test_costs_come_from_the_calibration_of_this_machine(tmp_path, capsys):
    plan, kept = tmp_path / "plan.toml", tmp_path / "kept.json"
    plan.write_text(UNCOSTED)
    assert main(["admit", str(plan), "--calibration", str(kept)]) == 1
    assert "has not been calibrated; run 'ringcast admit --calibrate'" in capsys.readouterr().err

    here = this_machine(metadata.version("ringcast"))
    costs = Costs(publish=Cost(fixed_s=0.001), deliver=Cost(fixed_s=0.002))
    save(kept, Calibration(here, costs, 0.0005, "2026-01-01", True, waking_s=0.0001))  # once, and for each step
    assert main(["admit", str(plan), "--calibration", str(kept), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["streams"][0]["bound_s"] == pytest.approx(0.0037)

    save(kept, Calibration(Machine("another", 64, "1", "0"), costs, 0.0, "2026-01-01", True))
    assert main(["admit", str(plan), "--calibration", str(kept)]) == 1
    assert "of another machine or version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["admit"], "say which FILE, or --calibrate"),
        (["admit", "nowhere.toml"], "nowhere.toml: cannot be read"),
    ],
)
def test_wrong_use_is_one_sentence(arguments, says, capsys):
    assert main(arguments) != 0
    assert says in capsys.readouterr().err


def test_a_mistake_in_the_file_names_file_line_and_field(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(UNCOSTED.replace("bytes", "size"))
    assert main(["admit", str(plan)]) == 1
    said = capsys.readouterr().err
    assert str(plan) in said
    assert "line 7, streams[0].size: there is no such field" in said
