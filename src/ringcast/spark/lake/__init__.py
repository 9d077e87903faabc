"""The lake: tables as directories of Parquet files, with commits that are seen whole or not at all."""

from ringcast.spark.lake.lake import Lake, Written
from ringcast.spark.lake.log import LakeError

__all__ = ["Lake", "LakeError", "Written"]
