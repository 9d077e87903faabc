"""Administrators' settings of a tag's channels, and what becomes of them when two sides set some apart. Pure.

Each setting carries a stamp: how many settings of the tag there were before it, and the node that wrote it down. When
the halves of a partition meet, the settings of both are merged, node by node that they are for: the larger number wins,
between equal numbers the later name of the node that wrote it. So the outcome does not depend on who hears of whom
first. One that was taken back keeps its stamp, so that it stays so; of those the latest MOST_TAKEN_BACK are kept. What
was set for a subscriber that left is forgotten with the next setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import TagRow

MOST_TAKEN_BACK = 64
"""A partition in which more are taken back than that may bring the oldest of them back."""
_NEVER = (0, "")


def changed(row: TagRow, node: str, at: str | None, transport: str | None, subscribers: Collection[str]) -> TagRow:
    """The row with the setting for `node` changed, as its primary writes it down; `subscribers` are the keys of those
    that there are."""
    # It is larger than all before it, forgotten ones too: so numbers only grow.
    number = 1 + max((number for number, _ in row.stamps.values()), default=0)
    settings = routes.changed(row, node, at, transport)
    stamps = row.stamps | {node: (number, row.primary)}
    for key in [key for key in settings.keys() | stamps.keys() if "#" in key and key not in (node, *subscribers)]:
        settings.pop(key, None)
        stamps.pop(key, None)
    return replace(row, settings=settings, stamps=_bounded(stamps, settings))


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
    stamps = _bounded(stamps, settings)
    return row if stamps == row.stamps else replace(row, settings=settings, stamps=stamps)


def _bounded(stamps: dict[str, tuple[int, str]], settings: Collection[str]) -> dict[str, tuple[int, str]]:
    """Whoever merges the same stamps forgets the same ones."""
    taken_back = sorted((stamp, key) for key, stamp in stamps.items() if key not in settings)
    forgotten = {key for _, key in taken_back[:-MOST_TAKEN_BACK]}
    return {key: stamp for key, stamp in stamps.items() if key not in forgotten}
