"""Starting Spark's Java: where its words go, and what is said when it does not start."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext, java_gateway

from ringcast.spark.jvm import launch


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Spark's own start script finds a Java that only complains."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho no room for 64 GB >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, **more: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(java_gateway, "Popen", start)
    yield
    for process in started:  # pyspark leaves the pipe to a Java that ended for the garbage collector to close
        assert process.stdin is not None
        process.stdin.close()


def test_a_java_that_does_not_start_is_quoted_and_nothing_goes_to_the_terminal(
    no_java: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(launch.SparkNotStarted, match="no room for 64 GB") as told:
        launch.launch({"spark.driver.memory": "64g"}, local=True)
    assert "no room for 64 GB" in told.value.said
    assert capfd.readouterr() == ("", "")


def test_the_log_is_kept_where_it_is_asked_for(no_java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "spark.log"
    log.write_text("before\n")
    monkeypatch.setenv(launch.LOG, str(log))
    with pytest.raises(launch.SparkNotStarted) as told:
        launch.launch({}, local=True)
    assert "before" not in told.value.said
    assert log.read_text().startswith("before\n")
    assert "no room for 64 GB" in log.read_text()


def test_more_is_written_where_somebody_looks() -> None:
    assert launch.log_level({}) == "ERROR"
    assert launch.log_level({launch.LOG: "/dev/stderr"}) == "WARN"
