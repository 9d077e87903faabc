"""Two reports side by side: which figures changed, and which verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ringcast.lab.measuring.rows import Row, number

Key = tuple[str, str]
HEADS = ("experiment", "what", "before", "after", "unit", "after / before", "verdict")


class Changed(NamedTuple):
    key: Key
    before: Row | None
    after: Row | None

    @property
    def ratio(self) -> float | None:
        before = self.before.value if self.before else None
        after = self.after.value if self.after else None
        return after / before if before and after is not None else None

    @property
    def verdict(self) -> str:
        met = [one.met if one is not None else None for one in (self.before, self.after)]
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        return {(True, False): "no longer met", (False, True): "now met"}.get((met[0], met[1]), "")  # type: ignore[arg-type]


def compared(before: Mapping[Key, Row], after: Mapping[Key, Row], least: float = 0.05) -> list[Changed]:
    """What differs by more than that share, or in its verdict; verdicts first, then the largest change."""
    found = [Changed(key, before.get(key), after.get(key)) for key in {**before, **after}]
    changed = [one for one in found if one.verdict or (one.ratio is not None and abs(one.ratio - 1) > least)]
    return sorted(changed, key=lambda one: (one.verdict in ("", "new", "gone"), -abs((one.ratio or 1) - 1), one.key))


def cells(changed: Iterable[Changed]) -> list[list[str]]:
    """For a table whose columns are `HEADS`."""
    return [
        [
            *one.key, number(one.before.value) if one.before else "", number(one.after.value) if one.after else "",
            (one.after or one.before).unit,  # type: ignore[union-attr]
            f"{one.ratio:.2f}" if one.ratio is not None else "", one.verdict,
        ]
        for one in changed
    ]  # fmt: skip
