"""Which of the tags that a pattern selects has the stream of highest fidelity. Pure.

By what its publisher says in its profile; of equals, by the bytes a second that it declared; of equals, by what the
tag's schema says a message holds. Of equals the one that is received stays, else the first by name.
"""

from __future__ import annotations

import math

from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.tag import TagAttributes, matches

Worth = tuple[float, float, float]


def worth(row: PublisherRow, attributes: TagAttributes | None) -> Worth:
    said = row.offered.fidelity if row.offered is not None else 0.0
    declared = row.declared.max_bytes / row.declared.period_s if row.declared is not None else 0.0
    return said, declared, _held(attributes)


def best_tag(table: TagTable, pattern: str, now: str = "") -> str:
    """'' when nobody publishes on any."""
    found: dict[str, Worth] = {}
    for row in table.all_publishers():
        name = row.info.tag
        if row.alive and matches(pattern, name):
            tag = table.tag(name)
            found[name] = max(worth(row, tag.attributes if tag is not None else None), found.get(name, (0.0, 0.0, 0.0)))
    most = max(found.values(), default=None)
    equals = sorted(name for name, one in found.items() if one == most)
    return now if now in equals else equals[0] if equals else ""


def _held(attributes: TagAttributes | None) -> float:
    """Of arrays the number of elements, of audio the samples a second; 0 where the schema does not tell."""
    schema = attributes.schema if attributes is not None and attributes.schema is not None else {}
    shape, rate, channels = schema.get("shape"), schema.get("rate_hz"), schema.get("channels", 1)
    if isinstance(shape, list) and all(isinstance(extent, int) for extent in shape):
        return float(math.prod(shape))
    return float(rate * channels) if isinstance(rate, int) and isinstance(channels, int) else 0.0
