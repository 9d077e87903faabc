"""`refine`: bronze messages of one family, decoded, once each, their times in one base.

Rows that cannot be decoded stay in the result, with the reason in `rejected`; `quality.part` takes them out. The
function never loses a row but for copies of a message.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.pipelines.decoding import decoded
from ringcast.spark.pipelines.times import WATERMARK, deduplicate, translate
from ringcast.spark.tables.silver import Family


def refine(messages: DataFrame, clocks: DataFrame, family: Family, watermark: str = WATERMARK) -> DataFrame:
    """The columns of `silver.<family>`, and for rejected rows `rejected`, `codec` and `payload`."""
    own = messages.where(of_pattern(F.col("tag"), family.pattern))
    once = deduplicate(translate(own, clocks), watermark)
    opened = once.withColumn("_value", decoded(family, F.col("codec"), F.col("payload")))
    bad = F.col("_value.error").isNotNull()
    values = {name: F.col(f"_value.{name}").alias(name) for name in family.values.fieldNames()}
    return opened.select(
        *(values.get(name, F.col(name)) for name in family.table.columns),
        F.col("_value.error").alias("rejected"),
        F.when(bad, F.col("codec")).alias("codec"),
        F.when(bad, F.col("payload")).alias("payload"),
    )


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
