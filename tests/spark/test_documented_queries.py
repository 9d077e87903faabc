"""The Python blocks of pages about Spark run as they stand there, in a program with a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from documented_programs import needs_spark, program
from markdown_pages import pages
from spark_programs import quick

PATIENCE_S = 300.0
PAGES = [page for page in pages() if needs_spark(page)]


def test_there_are_such_pages() -> None:
    assert {page.name for page in PAGES} == {"adding-a-pipeline.md", "analysing.md", "pipelines.md", "spark.md"}


def test_they_run(daemon: Any, tmp_path: Path) -> None:
    """In one process, one page after the other: starting Spark takes longer than all of it."""
    source = "".join(program(page, spark=True) for page in PAGES)
    path = tmp_path / "pages.py"
    path.write_text(source + "\nfor query in spark.streams.active:\n    query.stop()\nspark.stop()\n")
    environment = {**os.environ, **quick(), "RINGCAST_SOCKET": daemon.socket_path}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, ""), "what Spark says of itself is not for the reader of a page"
