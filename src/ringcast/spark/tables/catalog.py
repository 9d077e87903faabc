"""Tables by name."""

from __future__ import annotations

from ringcast.errors import RingcastError
from ringcast.spark.tables import bronze, gold, silver, upkeep
from ringcast.spark.tables.table import Table

_TABLES = (
    bronze.MESSAGES,
    *(family.table for family in silver.FAMILIES.values()),
    gold.DETECTIONS, gold.FIRES, gold.QOS, gold.FITS, gold.TRAINING,
    upkeep.QUARANTINE, upkeep.QUALITY, upkeep.RUNS, upkeep.CLOCKS, upkeep.SENSORS, upkeep.TRUTH,
)  # fmt: skip
_BY_NAME = {table.name: table for table in _TABLES}


class NoSuchTable(RingcastError, LookupError):
    """No table of that name is declared."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no table {name!r}; there are {', '.join(_BY_NAME)}")


def names() -> list[str]:
    return list(_BY_NAME)


def find(name: str) -> Table:
    """The table called `name`. Raises NoSuchTable."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise NoSuchTable(name) from None
