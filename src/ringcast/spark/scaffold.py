"""`ringcast pipeline new`: a package of its own with one working pipeline and its test, to be changed from there."""

from __future__ import annotations

import re
from pathlib import Path

from ringcast.errors import RingcastError


class BadPipelineName(RingcastError, ValueError):
    """A name that cannot be a module's, or a place that is taken."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"{name!r}: {reason}")


def write_pipeline(name: str, folder: Path) -> list[Path]:
    """The files of a new package below `folder`. Raises BadPipelineName."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,40}", name):
        raise BadPipelineName(name, "a pipeline's name has small letters, digits and underscores, as 'room_heat'")
    root = folder / name
    if root.exists():
        raise BadPipelineName(name, f"{root} exists already; choose another name or another --out")
    made = {
        root / "pyproject.toml": _PROJECT,
        root / f"{name}_pipeline.py": _MODULE,
        root / f"test_{name}_pipeline.py": _TEST,
    }
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("NAME", name))
    return list(made)


_PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "NAME-pipeline"
version = "0.1.0"
dependencies = ["ringcast[spark]"]

[project.entry-points."ringcast.pipelines"]
NAME = "NAME_pipeline"

[tool.setuptools]
py-modules = ["NAME_pipeline"]
"""

_MODULE = '''\
"""The pipeline `NAME`: mean and greatest temperature of each tag, for every ten seconds."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.columns import DOUBLE, LONG, STRING, TIME, columns
from ringcast.spark.tables.silver import Family
from ringcast.spark.tables.table import HOURLY, Table

# Which tags, and what a message on them is: {"celsius": 21.5}
TEMPERATURE = Family("NAME_temperature", "lab/*/temp", columns(celsius=DOUBLE), "temperatures of rooms")

# Where the results go.
RESULT = Table(
    "gold.NAME",
    "mean and greatest temperature of each tag",
    columns(event_time=TIME, tag=STRING, mean=DOUBLE, greatest=DOUBLE, messages=LONG, run_id=STRING),
    HOURLY,
)


@pipeline(
    "NAME",
    "mean and greatest temperature of each tag",
    reads={"temperature": TEMPERATURE},
    writes=RESULT,
    expect=[Expectation("a room is not an oven", "greatest < 100", "quarantine")],
    key=["event_time", "tag"],
    small=True,
)
def summarise(temperature: DataFrame, *, window_s: float = 10.0) -> DataFrame:
    span = F.window("event_time", f"{round(window_s * 1000)} milliseconds")
    grouped = temperature.groupBy(span.alias("span"), "tag").agg(
        F.avg("celsius").alias("mean"), F.max("celsius").alias("greatest"), F.count("*").alias("messages")
    )
    return grouped.select(F.col("span.start").alias("event_time"), "tag", "mean", "greatest", "messages")
'''

_TEST = '''\
"""What `NAME` makes of a few temperatures."""

import datetime as dt

from NAME_pipeline import summarise

from ringcast.spark.session import open_session

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def test_mean_and_greatest_of_each_tag():
    spark = open_session("local[1]")
    rows = [(NOON + dt.timedelta(seconds=s), "lab/a/temp", 20.0 + s) for s in (0, 1, 2, 11)]
    found = summarise(spark.createDataFrame(rows, "event_time timestamp, tag string, celsius double"))
    assert [(r["mean"], r["greatest"], r["messages"]) for r in found.orderBy("event_time").collect()] == [
        (21.0, 22.0, 3),
        (31.0, 31.0, 1),
    ]
'''
