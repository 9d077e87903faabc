"""A tag that a pipeline's results go out on, through the sink of the format `ringcast`.

Inside a stream's `foreachBatch` a batch is named, so that one that Spark runs again after a crash is not published a
second time. Must not know what the rows mean.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

import ringcast

CODEC = "json"


@dataclass(frozen=True)
class Outlet:
    """`socket` is the daemon to publish through; None the node's own."""

    tag: str
    socket: str | None = None

    def check(self) -> None:
        """Ask before there is anything to send, where the answer is an error of ours and not one out of Java.

        Raises TagConflict when the tag exists with another codec, BadTagName.
        """
        with ringcast.connect(self.socket, program="spark outlet") as session:
            if session.tags(self.tag):
                session.tag(self.tag, codec=CODEC)

    def send(
        self, rows: DataFrame, batch: tuple[str, int] | None = None, state: str | os.PathLike[str] | None = None
    ) -> None:
        """One message per row. With `batch`, a query's name and the batch's number, once: `state` is a directory of
        the driver's machine where this is remembered."""
        writer = rows.write.format("ringcast").mode("append").option("tag", self.tag).option("codec", CODEC)
        if self.socket is not None:
            writer = writer.option("socket", self.socket)
        if batch is not None:
            query, number = batch
            writer = writer.option("queryId", query).option("batchId", str(number))
            writer = writer.option("stateLocation", os.fspath(state or "."))
        writer.save()

    def send_now(
        self, rows: pa.Table, schema: StructType, batch: tuple[str, int] | None, state: str | os.PathLike[str]
    ) -> None:
        """The same for rows that the driver has: no Spark job."""
        from ringcast.spark.tags.options import write_options
        from ringcast.spark.tags.sink import BatchPublisher

        options = {"tag": self.tag, "codec": CODEC, "stateLocation": os.fspath(state)}
        if self.socket is not None:
            options["socket"] = self.socket
        if batch is not None:
            options |= {"queryId": batch[0], "batchId": str(batch[1])}
        publisher = BatchPublisher(write_options(options), schema)
        publisher.commit([publisher.write(iter(rows.to_batches()))])
