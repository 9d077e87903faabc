"""Which rows of other nodes are taken in: the same checks of names and attributes as for local clients. Pure.

A row that fails is left out of its delta and counted. The rest of the delta is good: one bad row must not keep a node's
other rows from spreading, nor cost the peer that passed it on its link.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from ringcast.control.limits import (
    MAX_BORN,
    MAX_CHOICES_PER_TAG,
    MAX_LABEL_CHARS,
    MAX_PLACED_PER_TAG,
    MAX_SETTINGS_PER_TAG,
    MAX_TERM,
    MAX_WHY_CHARS,
)
from ringcast.control.peering import NAME_PATTERN
from ringcast.daemon.table.attributes import (
    MAX_PLACE_CHARS,
    MAX_TRANSPORT_CHARS,
    check_geometry,
    is_priority,
    resolve,
)
from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, Row, SubscriberRow, TagRow
from ringcast.errors import RingcastError
from ringcast.model.carrier import is_automatic
from ringcast.model.place import Wanted
from ringcast.model.tag import check_name, check_pattern

_NODE = re.compile(NAME_PATTERN)
_MAX_ID = 2**62
_MAX_SEQ = 2**63
_MAX_PID = 2**31
_MAX_SIDE = 2**20
_MAX_HZ = 1e9
_MAX_DIGITS = 19
MAX_RECEIVER_CHARS = 64 + len("#") + _MAX_DIGITS
"""See `is_receiver` and `NAME_PATTERN`."""
MAX_CHOICE_CHARS = MAX_TRANSPORT_CHARS + len(" to ") + MAX_RECEIVER_CHARS + len(" unordered")


def admit(delta: Delta, refused: Counter[str]) -> Delta:
    """The delta without the rows that no honest node writes."""
    good = [entry for entry in delta.entries if _is_good(entry, refused)]
    return delta if len(good) == len(delta.entries) else msgspec.structs.replace(delta, entries=good)


def _is_good(entry: Entry, refused: Counter[str]) -> bool:
    if entry.row is None:
        return True
    if not _plausible(entry.row):
        refused["implausible row"] += 1
        return False
    if not _well_named(entry.row):
        refused["bad name in a row"] += 1
        return False
    return True


def _plausible(row: Row) -> bool:
    if isinstance(row, TagRow):
        return 0 <= row.born <= MAX_BORN and 0 <= row.term <= MAX_TERM and _good_attributes(row)
    if not (0 <= row.info.id <= _MAX_ID and 0 <= row.info.pid <= _MAX_PID):
        return False
    if isinstance(row, SubscriberRow):
        good = _good_wish(row.wanted) and 0 <= row.deadline_s <= _MAX_HZ and 0 <= row.pulls_s <= _MAX_HZ
        named = len(row.transport) <= MAX_TRANSPORT_CHARS and row.transport.isprintable()
        return good and named and 0 <= row.since <= MAX_BORN
    if not 0 <= row.since <= MAX_BORN:
        return False
    return 0 <= row.info.incarnation < 2**64 and 0 <= row.end <= _MAX_SEQ and _good_geometry(row)


def _good_attributes(row: TagRow) -> bool:
    try:
        resolve(row.name, msgspec.structs.asdict(row.attributes), None)
    except RingcastError:
        return False
    return True


def _good_geometry(row: PublisherRow) -> bool:
    try:
        check_geometry(row.depth, row.capacity_bytes)
    except RingcastError:
        return False
    return True


def _well_named(row: Row) -> bool:
    try:
        if isinstance(row, TagRow):
            check_name(row.name)
            known = not row.backup or _is_node(row.backup)
            return known and _good_settings(row) and _good_places(row) and _good_choices(row)
        if isinstance(row, PublisherRow):
            check_name(row.info.tag)
        else:
            check_pattern(row.info.pattern)
    except RingcastError:
        return False
    return _is_label(row.info.user) and _is_label(row.info.program)


def _good_settings(row: TagRow) -> bool:
    return len(row.settings) <= MAX_SETTINGS_PER_TAG and all(
        (not node or is_receiver(node))
        and len(setting.at) <= MAX_PLACE_CHARS and setting.at.isprintable()
        and len(setting.transport) <= MAX_TRANSPORT_CHARS and setting.transport.isprintable()
        and is_priority(setting.priority)
        for node, setting in row.settings.items()
    )  # fmt: skip


def _good_places(row: TagRow) -> bool:
    return len(row.placed) <= MAX_PLACED_PER_TAG and all(
        is_receiver(key) and _is_place(placed.at) and len(placed.why) <= MAX_WHY_CHARS and placed.why.isprintable()
        for key, placed in row.placed.items()
    )


def _good_choices(row: TagRow) -> bool:
    return len(row.chosen) <= MAX_CHOICES_PER_TAG and all(
        _is_carrier(key) and _is_carrier(one.transport) and not is_automatic(one.transport)
        and _is_carrier(one.pinned) and len(one.why) <= MAX_WHY_CHARS and one.why.isprintable()
        and 0 <= one.since_ns < 2**63
        for key, one in row.chosen.items()
    )  # fmt: skip


def _is_carrier(text: str) -> bool:
    return len(text) <= MAX_CHOICE_CHARS and text.isprintable()


def _good_wish(wanted: Wanted) -> bool:
    least_size, most_size = wanted.range_size or ((1, 1), (1, 1))
    sides = (*(wanted.size or (1, 1)), *least_size, *most_size)
    fits = 1 <= wanted.every <= _MAX_ID and all(1 <= side <= _MAX_SIDE for side in sides)
    fits = fits and (not wanted.transport or (is_automatic(wanted.transport) and _is_carrier(wanted.transport)))
    fits = fits and least_size[0] <= most_size[0] and least_size[1] <= most_size[1]
    least, most = wanted.range_hz or (_MAX_HZ, _MAX_HZ)
    return fits and 0 <= wanted.rate_hz <= _MAX_HZ and 0 < least <= most <= _MAX_HZ and _is_place(wanted.at)


def _is_place(at: str) -> bool:
    return len(at) <= MAX_PLACE_CHARS and at.isprintable()


def is_receiver(key: str) -> bool:
    """Whether a setting can be for it: a node, or with `#NUMBER` one of its subscribers."""
    node, mark, number = key.partition("#")
    return _is_node(node) and (not mark or (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS))


def _is_node(name: str) -> bool:
    return _NODE.fullmatch(name) is not None


def _is_label(text: str) -> bool:
    return len(text) <= MAX_LABEL_CHARS and text.isprintable()
