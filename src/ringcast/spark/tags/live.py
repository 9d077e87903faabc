"""The tags that a pipeline reads, as streams of bronze messages: what `pipeline run --stream` starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.spark.tables.bronze import MESSAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ringcast.spark.declaration import Pipeline

EVERYTHING = "**"


def messages_for(
    spark: SparkSession,
    pipeline: Pipeline,
    tag: str | None = None,
    socket: str | None = None,
    starting: str = "latest",
    recording: str | None = None,
) -> DataFrame | dict[str, DataFrame]:
    """One stream for each family that it reads, or one of everything where it reads messages as they are.

    With `recording` what the rings no longer hold is read from there, where it has it.
    """

    def stream(pattern: str) -> DataFrame:
        reader = spark.readStream.format("ringcast").option("tag", pattern).option("decode", "false")
        reader = reader.option("startingOffsets", starting)
        if socket is not None:
            reader = reader.option("socket", socket)
        if recording is not None:
            reader = reader.option("path", recording)
        return reader.load()

    whole = pipeline.scan is not None or not pipeline.families or MESSAGES in pipeline.tables
    if tag is not None or whole:
        return stream(tag or EVERYTHING)
    return {family.name: stream(family.pattern) for family in pipeline.families}
