"""`ringcast choose`: a transport for an environment, or what is missing, in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringcast.cli import main

MODEL = {
    "metric": "relate2", "family": "tree", "share": 0.96, "constant": 0.61, "features": ["loss_percent", "rate_hz"],
    "labels": ["multicast", "nak"], "spans": {"loss_percent": [0, 5], "rate_hz": [10, 100]},
    "wins": {"nak": 7, "multicast": 3}, "trees": [[[0, 0.5, 1, 2], [[1, 0]], [[0, 1]]]],
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MODEL))
    return str(path)


def test_a_transport_alone_on_standard_output(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose", model, "loss_percent=3", "rate_hz=1000"]) == 0
    out, notes = capsys.readouterr()
    assert out == "nak\n"
    assert "rate_hz was 10 to 100 where the model learned" in notes
    assert main(["choose", model, "loss_percent=0", "rate_hz=50", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"transport": "multicast", "metric": "relate2", "share": 0.96, "beyond": []}


def test_without_numbers_it_says_what_it_is(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose", model]) == 0
    out, notes = capsys.readouterr()
    assert "loss_percent" in out
    assert "96.0%" in notes
    assert "61.0%" in notes
    assert main(["choose", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wins"] == {"nak": 7, "multicast": 3}


def test_mistakes_are_said_in_a_sentence(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    for words, code, sentence in (
        ([model, "loss_percent=3"], 2, "the model also needs rate_hz"),
        ([model, "loss_percent=3", "rate=1"], 2, "does not look at rate, only at loss_percent, rate_hz"),
        ([model, "rate_hz=fast"], 2, "'rate_hz=fast' is not NAME=NUMBER"),
        ([str(tmp_path / "none.json")], 1, "is no model: No such file"),
        ([str(broken)], 1, "'ringcast pipeline run train' writes one"),
    ):
        assert main(["choose", *words]) == code
        assert sentence in capsys.readouterr().err
