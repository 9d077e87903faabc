"""Every table of the lake, each with one declared schema. `catalog.find(name)` gives one by its name."""

from ringcast.spark.tables.catalog import find, names
from ringcast.spark.tables.table import HOURLY, WHOLE, Table, hours

__all__ = ["HOURLY", "WHOLE", "Table", "find", "hours", "names"]
