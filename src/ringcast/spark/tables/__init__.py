"""Tables that every lake has, and what a table is. `catalog.find(name)` gives any by its name."""

from ringcast.spark.tables.table import HOURLY, WHOLE, Table, hours

__all__ = ["HOURLY", "WHOLE", "Table", "hours"]
