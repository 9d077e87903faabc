"""A model that was trained takes no better one's place, wherever that one is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from ringcast.adapt import Chooser
from ringcast.adapt.judging import FOLDER, Examples, shipped_examples
from ringcast.spark.experiments.comparing import judged_by, models_in_use, worse
from ringcast.spark.experiments.unseen import GATE


def always(label: str, metric: str = "relate2", feature: str = "loss_percent") -> dict[str, Any]:
    return {
        "metric": metric, "family": "linear", "share": 1.0, "features": [feature], "labels": [label],
        "weights": [[0.0]], "constants": [0.0],
    }  # fmt: skip


def parsed(model: dict[str, Any]) -> Chooser:
    return Chooser.parse(msgspec.json.encode(model))


def examples() -> Examples:
    found = shipped_examples("relate2")
    assert found is not None
    return found


def shipped() -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode((FOLDER / "relate2.json").read_bytes())
    return found


def test_what_is_worse_than_any_of_those_in_use_is_refused_by_its_name() -> None:
    in_use = {"a.json": parsed(always("udp")), "b.json": parsed(shipped())}
    assert "worse than b.json" in worse(always("tcp"), in_use, examples())
    assert worse(shipped(), in_use, examples()) == ""


def test_without_a_model_in_use_the_rule_is_to_be_beaten() -> None:
    assert "worse than the rule" in worse(always("tcp"), {}, examples())
    assert worse(shipped(), {}, examples()) == ""


def test_what_no_daemon_measures_is_not_exported() -> None:
    assert "looks at moonlight, which no daemon measures" in worse(always("nak", feature="moonlight"), {}, examples())
    old = {"old.json": parsed(always("nak", feature="moonlight"))}
    assert worse(shipped(), old, examples()) == "", "one that cannot be asked is no match"


def test_what_would_be_overwritten_is_in_use_and_so_are_the_lake_s_and_the_package_s(tmp_path: Path) -> None:
    here, lake, broken, other = (tmp_path / name for name in ("here.json", "lake.json", "broken.json", "other.json"))
    for path, model in ((here, always("udp")), (lake, shipped()), (other, always("udp", "latency_p99"))):
        path.write_bytes(msgspec.json.encode(model))
    broken.write_text("{")
    found = models_in_use("relate2", here, lake, lake, broken, other, tmp_path / "none.json")
    assert list(found) == [str(here), str(lake), "the model of the package"]
    assert models_in_use("relate", here) == {}


@pytest.mark.parametrize("in_order", [False, True])
def test_metrics_that_the_package_cannot_judge_are_judged_by_the_lake(spark: SparkSession, in_order: bool) -> None:
    metric = "relate2_net in order" if in_order else "relate2_net"
    rows = [
        (GATE, f'{{"loss_percent": {loss}, "transport": "{name}"}}', half, "relate2_net", value)
        for loss in (1, 2) for half in (0, 1) for name, value in (("nak", 1.0), ("tcp", 2.0), ("udp", 3.0))
    ]  # fmt: skip
    kinds = "experiment string, configuration string, repetition int, metric string, value double"
    found = judged_by(spark.createDataFrame(rows, kinds), metric)
    assert found is not None
    assert found.transports == (["nak", "tcp"] if in_order else ["nak", "tcp", "udp"])
    assert judged_by(spark.createDataFrame(rows[:0], kinds), metric) is None
    assert worse(always("tcp", metric), {}, None) == ""
