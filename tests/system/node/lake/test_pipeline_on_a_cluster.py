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
from spark_programs import quick

from ringcast.rescue import Mission, Settings
from ringcast.rescue.live import open_publishers, publish

pyspark = pytest.importorskip("pyspark")

PATIENCE_S = 300.0
COUNT = 1500
FIX = {"x": 1.0, "y": 2.5, "z": 3.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}


@pytest.fixture
def environment() -> dict[str, str]:
    """Small Javas, and nothing that listens beyond loopback."""
    from ringcast.spark.jvm.java import java_home

    home = java_home()
    sizes = {"spark_executor_memory": "512m", "spark_driver_memory": "512m", "spark_sql_shuffle_partitions": "2"}
    return {
        **os.environ, **({} if home is None else {"JAVA_HOME": home}), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m", **quick(**sizes),
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


def test_both_workers_read_through_the_mesh_and_the_pipelines_run_on_them(
    make_mesh: Any, cluster: str, environment: dict[str, str], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    a, b = make_mesh(2)
    # More than shares one partition, so that there is something for both.
    publishers = [a.session.tag(f"extra/{n}/gps", codec="json").publisher() for n in range(2)]
    for publisher in publishers:
        for _ in range(COUNT):
            publisher.send(FIX)
    begin_ns = time.time_ns() // 3_600_000_000_000 * 3_600_000_000_000
    mission = Mission(Settings(seconds=1.0, uavs=1, cameras=2, begin_ns=begin_ns))
    opened = open_publishers(mission, a.session)
    sent = publish(mission, a.session, pace=20.0, begin_ns=begin_ns, publishers=opened)
    eventually(lambda: all(b.knows(tag) for tag in (*sent, "extra/0/gps", "extra/1/gps")))
    (tmp_path / "mission.json").write_text(json.dumps(mission.calibration()))
    program = tmp_path / "pipelines.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), cluster, b.daemon.socket_path, str(tmp_path)], env=environment, cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["ingest"]["outputs"] == {"bronze.messages": 2 * COUNT + sum(sent.values())}
    refined = told["refine"]["outputs"]
    assert {name: refined[f"silver.{name}"] for name in ("infrared", "pose", "gps", "video")} == {
        "infrared": 10, "pose": 50, "gps": 10, "video": 50
    }  # fmt: skip
    assert told["fuse"]["counts"]["fuse: frames"] == 10
    assert told["fuse"]["outputs"]["gold.detections"] > 10
    published = a.session.tag("sar/detections", create=False).history()
    assert published.latest().seq + 1 == told["fuse"]["outputs"]["gold.detections"], "out on a tag of the other node's"
    for name in ("w0", "w1"):
        assert list((tmp_path / name).glob("app-*/*/stderr")), f"no executor ran on {name}"


# The command itself, three times in one process and so as one application: starting one takes as long as the work.
PROGRAM = """
import contextlib, io, json, sys
from ringcast.cli.program import main
from ringcast.spark.lake import Lake
from ringcast.spark.session import open_session
from ringcast.rescue.tables import SENSORS
from ringcast.rescue.trials import declared

master, socket, place = sys.argv[1:]
spark = open_session(master)
told = {}
for name, more in {"ingest": ["--tag", "**"], "refine": [], "fuse": ["--publish", "sar/detections"]}.items():
    if name == "fuse":
        rows = declared(spark, json.load(open(place + "/mission.json")), SENSORS)
        Lake(spark, place + "/lake").replace(SENSORS, rows)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["pipeline", "run", name, "--master", master, "--socket", socket, "--lake", place + "/lake",
                     "--json", *more])
    assert code == 0, code
    told[name] = json.loads(said.getvalue())
print(json.dumps(told))
"""
