"""Closing a Spark session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from ringcast.spark.session import close_session


class Spark:
    """As after an interrupt in the middle of a call: the interrupted thread's connection is of no use."""

    def __init__(self) -> None:
        self.interrupted = threading.current_thread()
        self.stopped = False

    def stop(self) -> None:
        if threading.current_thread() is self.interrupted:
            raise TypeError("the answer to another question")
        self.stopped = True


def test_an_interrupted_call_does_not_keep_spark_from_being_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    spark: Any = Spark()
    close_session(spark)
    assert spark.stopped
