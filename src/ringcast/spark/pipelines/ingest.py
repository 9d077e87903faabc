"""`ingest`: what a source or a recording gives, as rows of `bronze.messages`. Nothing is dropped or corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import NothingToDo, own_job, own_stream
from ringcast.spark.tables.bronze import KEY, MESSAGES

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job
    from ringcast.spark.streams import Sources, Streams

_UNSAID = {"every": "1", "lost": "0", "discardable": "false", "codec": "'bytes'", "schema_id": "null"}
"""What a source that does not know a column means by leaving it out."""


def ingest(messages: DataFrame) -> DataFrame:
    """The declared columns in the declared order; others, such as a decoded value, are left behind."""
    return messages.select(*(_column(messages, field.name, field.dataType.simpleString()) for field in MESSAGES.schema))


def _column(messages: DataFrame, name: str, kind: str) -> Column:
    known = F.col(name) if name in messages.columns else F.expr(_UNSAID.get(name, name))
    return known.cast(kind).alias(name)


@own_job("ingest", "messages of a recording or of tags into the lake", writes=MESSAGES)
def ingest_job(job: Job) -> None:
    """Those that are not there yet. A span says which of the source's rows are meant; what else an hour holds, of other
    tags for one, stays."""
    if job.source is None:
        raise NothingToDo("ingest", "give it a recording (--input DIR) or live tags (--tag PATTERN)")
    rows = job.within(ingest(job.source))
    job.run.wrote(MESSAGES.name, job.lake.append_new(MESSAGES, rows, KEY, job.run.id).rows)


@own_stream("ingest")
def ingest_stream(streams: Streams, sources: Sources) -> None:
    streams.begin("ingest", ingest(sources.all()), streams.into(MESSAGES, (), KEY))
