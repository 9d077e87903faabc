"""What a tag's channels are given because deadlines were admitted on it: a class and a schedule, as words. Pure.

Every node finds the same from its table. It is a default: whatever a setting, a subscriber or the tag's attributes say
comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ringcast.admission.priorities import by_default
from ringcast.daemon.table.rows import Change, PublisherRow, SubscriberRow, is_declaration
from ringcast.daemon.table.table import TagTable
from ringcast.model import priority
from ringcast.model.tag import matches


def deadline_of(table: TagTable, tag: str) -> float:
    """The shortest that was admitted on a tag with a declared publisher; infinite when there is none."""
    if not any(map(is_declaration, table.publishers(tag))):
        return math.inf
    rows = (*table.subscribers(tag), *table.pulls(tag))
    return min((row.deadline_s for row in rows if row.deadline_s), default=math.inf)


def promised(table: TagTable, tag: str) -> str:
    """As words; '' where nothing was promised."""
    deadline_s = deadline_of(table, tag)
    if math.isinf(deadline_s):
        return ""
    level, sched = by_default(deadline_s)
    return priority.settled((f"{level} {sched}".strip(),))


class Promises:
    """Of all tags, as of the last change: finding them anew for each stream that is looked at would take long."""

    def __init__(self, table: TagTable) -> None:
        self._table = table
        self._words: dict[str, str] = {}

    def words(self, tag: str) -> str:
        return self._words.get(tag, "")

    def changed(self, changes: Iterable[Change]) -> list[str]:
        """Rows came or went: the tags of which something else is promised now."""
        concerned: set[str] = set()
        for _, row in changes:
            if isinstance(row, PublisherRow) and row.declared is not None:
                concerned.add(row.info.tag)
            elif isinstance(row, SubscriberRow) and row.deadline_s:
                concerned.update(known.info.tag for known in self._table.publishers_matching(row.info.pattern))
                concerned.update(tag for tag in self._words if matches(row.info.pattern, tag))
        found = {tag: promised(self._table, tag) for tag in sorted(concerned)}
        different = [tag for tag, words in found.items() if words != self.words(tag)]
        if different:
            self._words = {tag: words for tag, words in (self._words | found).items() if words}
        return different
