"""`qos`: how well channels delivered, per window of event time.

Latency is received minus event time, the t5 - t1 of paper 002; of its parts, `queue` is sent minus event and `transfer`
received minus sent. Jitter has both definitions of section VI there: `jitter_period_ns` is the mean change from one
period of delivery to the next adjacent one (periods over a gap do not count), `jitter_latency_ns` the standard
deviation of latency. ReLate and ReLate2 are those of paper 004, section 3.2.3.

What is lost is what the reader counted before each message, or what is missing between the window's first and last
number when that is more; messages that scaling leaves out are neither expected nor lost.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.pipelines.times import WATERMARK, deduplicate, translate
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.gold import QOS
from ringcast.spark.tables.upkeep import CLOCKS

CHANNEL = ("tag", "publisher", "incarnation", "node")
WINDOW_S = 1.0
DEADLINE_NS = 50_000_000


@pipeline(
    "qos",
    "quality of service per channel and window",
    reads={"messages": MESSAGES, "clocks": CLOCKS},
    writes=QOS,
    expect=(
        Expectation("loss is a share", "loss between 0 and 1", "fail"),
        Expectation("latency is not negative", "latency_p50_ns >= 0", "keep"),
    ),
    key=("event_time", "window_s", *CHANNEL),
    margin_s=60.0,
    small=True,
)
def served(
    messages: DataFrame, clocks: DataFrame, watermark: str = WATERMARK, *, window_s: float = WINDOW_S,
    deadline_ns: int = DEADLINE_NS,
) -> DataFrame:  # fmt: skip
    """From messages as they were received."""
    return qos(deduplicate(translate(messages, clocks), watermark), window_s, deadline_ns)


def qos(messages: DataFrame, window_s: float = WINDOW_S, deadline_ns: int = DEADLINE_NS) -> DataFrame:
    """The columns of `gold.qos` but `run_id`, from messages that are there once and whose times are in one base."""
    timed = messages.withColumns(
        {
            "_latency": F.col("received_ns") - F.col("event_ns"),
            "_queue": F.col("sent_ns") - F.col("event_ns"),
            "_transfer": F.col("received_ns") - F.col("sent_ns"),
        }
    )
    span = F.window("event_time", f"{round(window_s * 1e6)} microseconds")
    grouped = timed.groupBy(span.alias("_window"), *CHANNEL).agg(
        F.count("*").alias("received"),
        F.max("seq").alias("_last"),
        F.min("seq").alias("_first"),
        F.max("every").alias("_every"),
        F.sum("lost").alias("_counted"),
        F.avg("_latency").alias("latency_mean_ns"),
        F.percentile("_latency", F.array(*map(F.lit, (0.5, 0.95, 0.99)))).alias("_percentiles"),
        F.percentile("_queue", 0.5).alias("queue_p50_ns"),
        F.percentile("_transfer", 0.5).alias("transfer_p50_ns"),
        F.stddev_pop("_latency").alias("jitter_latency_ns"),
        F.sum((F.col("_latency") > deadline_ns).cast("bigint")).alias("deadline_misses"),
        F.sort_array(F.collect_list(F.struct("seq", "received_ns"))).alias("_arrivals"),
    )
    missing = F.expr("(_last - _first) div greatest(_every, 1) + 1 - received")
    counted = grouped.withColumn("lost", F.greatest(F.col("_counted"), missing, F.lit(0)))
    whole = counted.withColumn("expected", F.col("received") + F.col("lost"))
    return whole.select(
        F.col("_window.start").alias("event_time"),
        F.lit(float(window_s)).alias("window_s"),
        *CHANNEL,
        "expected",
        "received",
        "lost",
        (F.col("lost") / F.col("expected")).alias("loss"),
        "latency_mean_ns",
        *(F.col("_percentiles")[at].alias(f"latency_{name}_ns") for at, name in enumerate(("p50", "p95", "p99"))),
        "jitter_latency_ns",
        F.expr(_PERIOD_JITTER).alias("jitter_period_ns"),
        "queue_p50_ns",
        "transfer_p50_ns",
        (F.col("latency_mean_ns") / (F.col("received") / F.col("expected"))).alias("relate"),
        (F.col("latency_mean_ns") * (100.0 * F.col("lost") / F.col("expected") + 1.0)).alias("relate2"),
        "deadline_misses",
    )


# Of each three messages in a row without a gap, how much the second period differs from the first.
_PERIOD_JITTER = """
aggregate(
  transform(
    filter(
      sequence(2, greatest(size(_arrivals), 3) - 1),
      i -> i < size(_arrivals) and _arrivals[i].seq - _arrivals[i - 1].seq = _every
           and _arrivals[i - 1].seq - _arrivals[i - 2].seq = _every
    ),
    i -> abs((_arrivals[i].received_ns - _arrivals[i - 1].received_ns)
             - (_arrivals[i - 1].received_ns - _arrivals[i - 2].received_ns))
  ),
  named_struct('sum', 0D, 'count', 0L),
  (a, change) -> named_struct('sum', a.sum + change, 'count', a.count + 1),
  a -> if(a.count = 0, null, a.sum / a.count)
)
"""
