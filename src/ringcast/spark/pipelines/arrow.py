"""Functions on Arrow arrays as functions on columns. One place, because pyspark's stubs do not know them yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import Column, functions
from pyspark.sql.types import DataType


def on_arrow(function: Callable[..., Any], returns: DataType | str) -> Callable[..., Column]:
    """`function` takes and gives pyarrow arrays of one length; its annotations must say so."""
    make = getattr(functions, "arrow_udf")  # noqa: B009
    return cast(Callable[..., Column], make(function, returns))
