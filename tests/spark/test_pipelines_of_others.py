"""Pipelines in packages of their own: found by their entry points, run as jobs and live, without a word elsewhere."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
import tomllib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bronze_rows import frame
from pyspark.sql import SparkSession

import ringcast
from ringcast.cli import main
from ringcast.rescue import Mission, Settings, bronze_rows
from ringcast.spark import catalog, declaration, jobs
from ringcast.spark.lake import Lake
from ringcast.spark.tables.bronze import MESSAGES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_S = 180.0


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Iterator[Callable[[Path], None]]:
    """A package as pip would install it for development: on the path, with its entry points beside it."""
    declaration.load()
    before = dict(declaration._declared)

    def install(folder: Path, place: Path) -> None:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        info = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        points = project["entry-points"][declaration.GROUP]
        lines = "\n".join(f"{name} = {value}" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[{declaration.GROUP}]\n{lines}\n")
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.syspath_prepend(str(folder))
        for module in points.values():
            spark.sparkContext.addPyFile(str(folder / f"{module}.py"))
        declaration.load.cache_clear()

    yield install  # type: ignore[misc]
    declaration._declared.clear()
    declaration._declared.update(before)


def test_two_more_consumers_of_the_same_streams(
    spark: SparkSession, tmp_path: Path, installed: Callable[..., None]
) -> None:
    installed(EXAMPLES / "city_pipelines", tmp_path / "site")
    assert {"heating", "crowds"} <= {one.name for one in declaration.pipelines()}
    lake = Lake(spark, tmp_path / "lake")
    lake.append(MESSAGES, frame(spark, bronze_rows(Mission(Settings(seconds=1.0, uavs=1, cameras=2)))))
    jobs.run("refine", lake, options={"families": ["infrared", "video"]})
    jobs.run("heating", lake)
    jobs.run("crowds", lake, options={"many": 1})
    (row,) = lake.read(catalog.find("gold.heating")).collect()
    assert (row.uav, row.frames) == ("uav/0/ir", 10)
    assert row.ground_k == pytest.approx(290, abs=2)
    assert 0 < row.warm_share < 0.2
    crowds = {row.camera: row for row in lake.read(catalog.find("gold.crowds")).collect()}
    assert {camera: row.frames for camera, row in crowds.items()} == {"street/0/video": 25, "street/1/video": 25}
    assert all(row.crowded == (row.most >= 1) for row in crowds.values())
    assert max(row.most for row in crowds.values()) >= 2


def test_a_new_pipeline_from_its_first_file_to_live_results(
    spark: SparkSession, command_session: None, tmp_path: Path, installed: Callable[..., None], daemon: Any,
    session: ringcast.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("RINGCAST_LAKE", str(tmp_path / "lake"))
    assert main(["pipeline", "new", "room_heat", "--out", str(tmp_path)]) == 0
    assert main(["pipeline", "new", "room_heat", "--out", str(tmp_path)]) == 1, "nothing is overwritten"
    capsys.readouterr()
    installed(tmp_path / "room_heat", tmp_path / "site")
    importlib.import_module("test_room_heat_pipeline").test_mean_and_greatest_of_each_tag()

    publisher = session.tag("lab/a/temp", codec="json").publisher()
    begin_ns = (time.time_ns() - 300 * 10**9) // 10**10 * 10**10
    for at, celsius in ((0, 20.0), (1, 22.0), (2, 250.0 - 150.0), (10, 30.0), (60, 1.0)):
        publisher.send({"celsius": celsius}, event_ns=begin_ns + at * 10**9)
    results = session.tag("lab/heat", codec="json").subscribe(start="earliest")
    came: list[dict[str, Any]] = []

    def watch() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not came and not over.is_set() and time.monotonic() < deadline:
            try:
                came.append(results.recv(timeout=0.5).data)
            except TimeoutError:
                # Time goes on for a stream only with messages.
                publisher.send({"celsius": 1.0}, event_ns=time.time_ns())
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    over = threading.Event()
    watching = threading.Thread(target=watch)
    watching.start()
    try:
        words = ["run", "room_heat", "--stream", "--start", "earliest", "--publish", "lab/heat", "--wait", "1 second"]
        assert main(["pipeline", *words, "--socket", daemon.socket_path]) == 0, capsys.readouterr().err
    finally:
        over.set()
        watching.join()
    table = catalog.find("gold.room_heat")
    lake = Lake(spark, tmp_path / "lake")
    found = {row.greatest: row for row in lake.read(table).collect()}
    assert (found[30.0]["mean"], found[30.0].messages, found[30.0].tag) == (30.0, 1, "lab/a/temp")
    assert came[0]["tag"] == "lab/a/temp"
    aside = lake.read(catalog.find("quarantine")).collect()
    assert [row.reason for row in aside] == ["a room is not an oven"]


def test_two_packages_with_one_name_are_told(tmp_path: Path) -> None:
    mine = declaration.find("qos")
    other = types.FunctionType((lambda: None).__code__, {"__name__": "elsewhere"})
    other.__module__ = "elsewhere"
    with pytest.raises(declaration.PipelineConflict, match=r"ringcast\.spark\.pipelines\.qos and elsewhere"):
        declaration._register(declaration.Pipeline("qos", "", other))
    assert declaration.find("qos") is mine
