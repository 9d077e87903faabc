"""Two reports side by side: which figures changed, and which verdicts. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ringcast.lab.measuring.rows import Row, number

Key = tuple[str, str]
_VERDICTS = {
    (True, False): "no longer met", (False, True): "now met", (None, False): "now judged: not met",
    (None, True): "now judged: met", (True, None): "no longer judged: was met",
    (False, None): "no longer judged: was not met",
}  # fmt: skip
"""By `met` before and after."""
_MEASURED = {(True, False): "no longer measured", (False, True): "now measured"}
HEADS = ("experiment", "what", "before", "after", "unit", "after / before", "verdict")


class Changed(NamedTuple):
    key: Key
    before: Row | None
    after: Row | None

    @property
    def ratio(self) -> float | None:
        """After by before: infinite from 0 to something, None where one of both has no value."""
        before = self.before.value if self.before else None
        after = self.after.value if self.after else None
        if before is None or after is None:
            return None
        if before == after:
            return 1.0
        return after / before if before else math.inf

    @property
    def verdict(self) -> str:
        """Also where a value, or a verdict, came or went: that is a change however large a value is."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        measured = self.before.value is not None, self.after.value is not None
        said = [_VERDICTS.get((self.before.met, self.after.met), ""), _MEASURED.get(measured, "")]
        return ", ".join(one for one in said if one)


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
            _times(one.ratio), one.verdict,
        ]
        for one in changed
    ]  # fmt: skip


def _times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return "from 0" if math.isinf(ratio) else f"{ratio:.2f}"
