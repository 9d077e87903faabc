"""A Spark cluster on this machine: a master, two workers, and a pipeline whose executors read another node's tags."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

PATIENCE_S = 180.0
COUNT = 1500
FIX = {"x": 1.0, "y": 2.5, "z": 3.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}


@pytest.fixture
def environment() -> dict[str, str]:
    """Small Javas, and nothing that listens beyond loopback."""
    from ringcast.spark.java import java_home

    home = java_home()
    submit = "--conf spark.executor.memory=512m --conf spark.driver.memory=512m pyspark-shell"
    return {
        **os.environ, **({} if home is None else {"JAVA_HOME": home}), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_SUBMIT_ARGS": submit,
    }  # fmt: skip


@pytest.fixture
def cluster(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The master's address; the workers' directories are `w0` and `w1`."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    deploy = "org.apache.spark.deploy"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *host, "--port", str(port)]]
    for name in ("w0", "w1"):
        commands.append(
            [f"{deploy}.worker.Worker", *host, "--cores", "1", "--memory", "600m", "-d", str(tmp_path / name), address]
        )
    started = []
    try:
        for command in commands:
            started.append(
                subprocess.Popen(
                    [program, *command], env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert all(process.poll() is None for process in started)
            assert time.monotonic() < deadline
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(PATIENCE_S)


def test_both_workers_read_through_the_mesh(
    make_mesh: Any, cluster: str, environment: dict[str, str], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    a, b = make_mesh(2)
    # More than shares one partition, so that there is something for both.
    publishers = [a.session.tag(f"uav/{n}/gps", codec="json").publisher() for n in range(2)]
    for publisher in publishers:
        for _ in range(COUNT):
            publisher.send(FIX)
    eventually(lambda: b.knows("uav/0/gps") and b.knows("uav/1/gps"))
    command = [
        sys.executable, "-m", "ringcast", "pipeline", "run", "ingest", "--master", cluster, "--tag", "uav/**",
        "--socket", b.daemon.socket_path, "--lake", str(tmp_path / "lake"), "--json",
    ]  # fmt: skip
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outputs"] == {"bronze.messages": 2 * COUNT}
    for name in ("w0", "w1"):
        assert list((tmp_path / name).glob("app-*/*/stderr")), f"no executor ran on {name}"
