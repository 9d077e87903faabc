"""Starts Spark's Java for this process. What it, Spark and Python workers write goes to a log, never to a terminal.

Java remarks on its modules, Spark on the host's name, and a worker prints a traceback when Java has gone before it:
none of that is for whoever runs a pipeline. What fails in a query comes as an exception. The log is a file that has no
name, or the one that RINGCAST_SPARK_LOG names (`/dev/stderr` for the terminal).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ringcast.errors import RingcastError

LOG = "RINGCAST_SPARK_LOG"
_SHOWN = 2_000
"""Of the log's end, in bytes, when Java does not start."""


class SparkNotStarted(RingcastError):
    """Spark's Java ended before it could be asked anything; `said` is what it wrote last."""

    def __init__(self, said: str) -> None:
        self.said = said
        super().__init__(f"Spark's Java did not start: {said or 'it wrote nothing'}")


def launch(settings: Mapping[str, str], local: bool) -> None:
    """Start Java, if this process has none yet. `local`: nothing of it listens or looks beyond this machine. Raises
    SparkNotStarted."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    with _log() as log, _environment(_addresses(local)):
        began = log.tell()
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as exc:
            raise SparkNotStarted(_end_of(log, began)) from exc
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def log_level(environment: Mapping[str, str] = os.environ) -> str:
    """What Spark writes to the log: little while nobody looks at it."""
    return "WARN" if environment.get(LOG) else "ERROR"


def _log() -> IO[bytes]:
    path = os.environ.get(LOG)
    return open(path, "ab") if path else tempfile.TemporaryFile()


def _end_of(log: Any, began: int) -> str:
    """What was written since, if it is a file that can be read."""
    with contextlib.suppress(OSError), open(f"/proc/self/fd/{log.fileno()}", "rb") as file:
        file.seek(max(began, os.fstat(file.fileno()).st_size - _SHOWN))
        return file.read().decode(errors="replace").strip()
    return ""


def _addresses(local: bool) -> dict[str, str]:
    # Else Spark asks what address the host's name has, and says so when it is a strange one.
    return {"SPARK_LOCAL_IP": "127.0.0.1"} if local and "SPARK_LOCAL_IP" not in os.environ else {}


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """For what is started meanwhile."""
    os.environ.update(more)
    try:
        yield
    finally:
        for name in more:
            os.environ.pop(name, None)
