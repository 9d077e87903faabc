"""Spark: tags as tables, and tables by their names. The only package that imports pyspark.

    from ringcast.spark import open_session
    spark = open_session("lake")
    spark.table("silver.gps").show()

`session.open_session()` gives a Spark session that knows the format `ringcast` and no lake; `tags` has the two halves
of that format. Needs the extra `spark`. Importing this package imports none of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast.spark.analyst.lake_session import LakeSession

__all__ = ["open_session"]


def open_session(lake: str | os.PathLike[str] | None = None, master: str | None = None) -> LakeSession:
    """A Spark session in which a lake's tables have their names. `lake` is its folder (default: RINGCAST_LAKE, or
    `lake` here), `master` a cluster's address (default: embedded, on all cores).

    Raises NoJava.
    """
    from ringcast.spark.analyst import lake_session

    return lake_session.open_session(lake, master)
