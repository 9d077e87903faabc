"""Tables and families by name: what the declared pipelines read and write. No list by hand."""

from __future__ import annotations

from ringcast.errors import RingcastError
from ringcast.spark.declaration import pipelines
from ringcast.spark.tables import bronze, silver, upkeep
from ringcast.spark.tables.table import Table


class NoSuchTable(RingcastError, LookupError):
    """No table of that name is declared."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no table {name!r}; there are {', '.join(names())}")


class NoSuchFamily(RingcastError, LookupError):
    """No pipeline reads a family of that name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no family {name!r}; there are {', '.join(families())}")


def tables() -> dict[str, Table]:
    """Bronze first, then what is made of it, then the tables about tables."""
    found = [bronze.MESSAGES, *(family.table for family in families().values())]
    for one in pipelines():
        found += [one.writes] if one.writes is not None else []
        found += one.tables
    order = {"bronze": 0, "silver": 1, "gold": 2}
    by_name = {table.name: table for table in [*found, *upkeep.ALL]}
    return dict(sorted(by_name.items(), key=lambda item: (order.get(item[0].partition(".")[0], 3), item[0])))


def families() -> dict[str, silver.Family]:
    """Every family that a pipeline reads, and the one for any record."""
    found = {family.name: family for one in pipelines() for family in one.families}
    return {**dict(sorted(found.items())), silver.RECORDS.name: silver.RECORDS}


def names() -> list[str]:
    return list(tables())


def find(name: str) -> Table:
    """The table called `name`. Raises NoSuchTable."""
    try:
        return tables()[name]
    except KeyError:
        raise NoSuchTable(name) from None


def find_family(name: str) -> silver.Family:
    """Raises NoSuchFamily."""
    try:
        return families()[name]
    except KeyError:
        raise NoSuchFamily(name) from None
