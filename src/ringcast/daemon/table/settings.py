"""Administrative settings of a tag's channels, and how the settings of two halves of a partition are merged. Pure.

Each setting carries a stamp: how many settings the tag had before it, and the node that wrote it. When the halves of a
partition meet, settings for the same node are compared: the larger number wins; if the numbers are equal, the name that
sorts last. So the result does not depend on the order in which nodes hear of each other. A setting that was removed
leaves its stamp behind, so that an older copy does not bring it back; the latest MOST_TAKEN_BACK of these are kept.
Settings for a subscriber that left are dropped with the next setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import TagRow
from ringcast.model.priority import Change

MOST_TAKEN_BACK = 64
"""A partition in which more are taken back than that may bring the oldest of them back."""
_NEVER = (0, "")


def changed(
    row: TagRow, node: str, at: str | None, transport: str | None, subscribers: Collection[str], *,
    planned: bool = False, urgency: Change = Change(),
) -> TagRow:  # fmt: skip
    """The row with the setting for `node` changed, as its primary writes it down; `subscribers` are the keys of those
    that there are."""
    # It is larger than all before it, forgotten ones too: so numbers only grow.
    number = 1 + max((number for number, _ in row.stamps.values()), default=0)
    settings = routes.changed(row, node, at, transport, urgency, planned=planned)
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
