"""Administrators' settings of a tag's channels, and what becomes of them when two sides set some apart. Pure.

Each setting carries a stamp: how many settings of the tag there were before it, and the node that wrote it down. When
the halves of a partition meet, the settings of both are merged, node by node that they are for: the larger number wins,
between equal numbers the later name of the node that wrote it. So the outcome does not depend on who hears of whom
first. One that was taken back keeps its stamp, so that it stays so.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import TagRow

_NEVER = (0, "")


def changed(row: TagRow, node: str, at: str | None, transport: str | None) -> TagRow:
    """The row with the setting for `node` changed, as its primary writes it down."""
    number = 1 + max((number for number, _ in row.stamps.values()), default=0)
    settings = routes.changed(row, node, at, transport)
    return replace(row, settings=settings, stamps=row.stamps | {node: (number, row.primary)})


def merged(row: TagRow, others: Iterable[TagRow]) -> TagRow:
    """The row with what is newer in other nodes' rows of the same tag; the very row when nothing is."""
    settings, stamps = dict(row.settings), dict(row.stamps)
    for other in others:
        for node, stamp in other.stamps.items():
            if stamp <= stamps.get(node, _NEVER):
                continue
            stamps[node] = stamp
            settings.pop(node, None)
            if node in other.settings:
                settings[node] = other.settings[node]
    return row if stamps == row.stamps else replace(row, settings=settings, stamps=stamps)
