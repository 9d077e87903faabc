"""`ringcast admit --calibrate` measures every stage on this machine, keeps it, and plans are computed with it."""

from __future__ import annotations

import json

from ringcast.cli.program import main

PLAN = """
nodes = [{name = "a"}, {name = "b"}]
links = [{a = "a", b = "b", bandwidth = 125e6}]
[[streams]]
tag = "t"
node = "a"
period_s = 1
bytes = 64
subscribers = [{name = "s", node = "b", deadline_s = 0.9}]
"""


def test_every_stage_has_a_cost_and_a_plan_uses_it(tmp_path, capsys):
    kept, plan = tmp_path / "kept.json", tmp_path / "plan.toml"
    plan.write_text(PLAN)
    assert main(["admit", "--calibrate", "--calibration", str(kept), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(kept.read_text())
    assert set(found["costs"]) == {"publish", "send", "receive", "deliver", "scale", "pull"}
    assert all(cost["fixed_s"] > 0 for cost in found["costs"].values())

    main(["admit", str(plan), "--calibration", str(kept), "--json"])
    parts = {part["what"]: part for part in json.loads(capsys.readouterr().out)["streams"][0]["parts"]}
    assert parts["deliver"]["worst_s"] >= found["costs"]["deliver"]["fixed_s"]
