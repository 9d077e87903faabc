"""`refine`: bronze messages of one family, decoded, once each, their times in one base.

Rows that cannot be decoded stay in the result, with the reason in `rejected`; `quality.part` takes them out. The
function never loses a row but for copies of a message.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.model.tag import matches
from ringcast.spark import catalog
from ringcast.spark.declaration import own_job, own_stream
from ringcast.spark.pipelines.decoding import decoded
from ringcast.spark.pipelines.times import WATERMARK, ahead, deduplicate, translate
from ringcast.spark.quality import SILVER
from ringcast.spark.settling import Place, note
from ringcast.spark.tables.bronze import KEY, MESSAGES
from ringcast.spark.tables.silver import RECORDS, Family
from ringcast.spark.tables.upkeep import CLOCKS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job
    from ringcast.spark.streams import Sources, Streams


def refine(messages: DataFrame, clocks: DataFrame, family: Family, watermark: str = WATERMARK) -> DataFrame:
    """The columns of `silver.<family>`, and for rejected rows `rejected`, `codec` and `payload`."""
    own = messages.where(of_pattern(F.col("tag"), family.pattern))
    once = deduplicate(translate(own, clocks), watermark)
    opened = once.withColumn("_value", decoded(family, F.col("codec"), F.col("payload")))
    why = F.coalesce(F.col("_value.error"), ahead())
    bad = why.isNotNull()
    values = {name: F.col(f"_value.{name}").alias(name) for name in family.values.fieldNames()}
    return opened.select(
        *(values.get(name, F.col(name)) for name in family.table.columns),
        why.alias("rejected"),
        F.when(bad, F.col("codec")).alias("codec"),
        F.when(bad, F.col("payload")).alias("payload"),
    )


@own_job("refine", "messages decoded, once each, times in one base", reads={"messages": MESSAGES, "clocks": CLOCKS})
def refine_job(job: Job) -> None:
    """Every family that a pipeline reads, or those of the option `families`. Raises NoSuchFamily."""
    clocks = job.lake.read(CLOCKS)
    for family in _chosen(job.options.get("families")):
        job.say(f"refining {family.name}")
        job.hold(family.table)
        messages = job.messages(dt.timedelta(seconds=1), [family])
        counts = job.write(family.table, job.within(refine(messages, clocks, family)), SILVER)
        came = job.within(translate(messages, clocks)).count()
        more = {"duplicated": came - counts["rows"]}
        note(job.lake, family.table.name, more, job.run, Place())
        job.run.count({k: v for k, v in more.items() if v}, f"{family.table.name}: ")


@own_stream("refine")
def refine_stream(streams: Streams, sources: Sources) -> None:
    for family in _chosen(sources.options.get("families")):
        rows = refine(sources.of(family), streams.clocks(sources), family, streams.watermark)
        streams.begin(f"refine-{family.name}", rows, streams.into(family.table, SILVER, KEY))


def _chosen(names: Sequence[str] | None) -> list[Family]:
    if names:
        return [catalog.find_family(name) for name in names]
    return [family for family in catalog.families().values() if family is not RECORDS]


def of_families(messages: DataFrame, families: Sequence[Family], tags: Sequence[str] | None = None) -> DataFrame:
    """Messages of any of these. Where it is known which `tags` there are, by a list of names: with that, and not with
    a pattern, Spark leaves out what a file has of others."""
    if tags is not None:
        return messages.where(
            F.col("tag").isin([tag for tag in tags if any(matches(f.pattern, tag) for f in families)])
        )
    return messages.where(reduce(Column.__or__, (of_pattern(F.col("tag"), one.pattern) for one in families)))


def of_pattern(tag: Column, pattern: str) -> Column:
    """Whether a tag's name matches a pattern, by Spark's own functions."""
    if pattern == "**":
        return ~tag.startswith("@")
    parts = pattern.split("/")
    regex = ""
    for at, part in enumerate(parts):
        slash = "/" if at else ""
        if part == "**":
            regex += f"({slash}[^/]+)*" if at else "([^/]+(/|$))*"
        elif at and parts[at - 1] == "**" and at == 1:
            regex += "[^/]+" if part == "*" else _quoted(part)
        else:
            regex += slash + ("[^/]+" if part == "*" else _quoted(part))
    own = tag.rlike(f"^{regex}$")
    return own if pattern.startswith("@") else own & ~tag.startswith("@")


def _quoted(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else f"\\{letter}" for letter in text)
