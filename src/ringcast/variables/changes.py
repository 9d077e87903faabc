"""What a subscription to variables is told: which variables, and what became of them, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringcast import _core
from ringcast.model.identity import PublisherInfo


class Changes:
    """Variables of one owner that came together. `indices` and `how` are arrays of equal length, made when somebody
    first looks. What came in several packets at once is there several times, each time with its newest value.

    Stamps as in the paper's Figure 1: t1 `times`, when each value was set; of the packet that came last t2 `sent_ns`,
    t3 `kernel_ns`, this node's kernel took it (0 on the owner's node and by tcp), t4 `arrived_ns`, it was in this
    node's mirror (0 on the owner's node); t5 `told_ns`, the service thread begins to tell. All UTC, and of this node's
    clock.
    """

    __slots__ = (
        "_how", "_indices", "_numbers", "_table", "_times", "_told", "arrived_ns", "kernel_ns", "lost", "owner",
        "sent_ns", "told_ns",
    )  # fmt: skip

    def __init__(
        self, owner: PublisherInfo, table: _core.VariableTable, told: _core.ToldVariables, lost: int, sent_ns: int,
        kernel_ns: int, arrived_ns: int,
    ) -> None:  # fmt: skip
        self.owner = owner
        self.lost = lost
        """Chunks that were sent before these and did not come; the next full packet makes up for them."""
        self.sent_ns = sent_ns
        self.kernel_ns = kernel_ns
        self.arrived_ns = arrived_ns
        self.told_ns = _core.utc_ns()
        self._table = table
        self._told = told
        self._indices: NDArray[np.uint32] | None = None
        self._how: NDArray[np.uint8] | None = None
        self._numbers: NDArray[np.float64] | None = None
        self._times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._told)

    @property
    def indices(self) -> NDArray[np.uint32]:
        if self._indices is None:
            self._indices = self._told.indices()
        return self._indices

    @property
    def how(self) -> NDArray[np.uint8]:
        if self._how is None:
            self._how = self._told.how()
        return self._how

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The values as float64; NaN for text and arrays."""
        if self._numbers is None:
            self._numbers = self._table.numbers(self.indices)
        return self._numbers

    @property
    def times(self) -> NDArray[np.int64]:
        """When each was set, as its owner says, translated into this node's time: UTC in nanoseconds."""
        if self._times is None:
            self._times = self._table.times(self.indices)
        return self._times

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Which of them are repeats of an old value, and not new."""
        marked: NDArray[np.bool_] = np.not_equal(self.how & _core.HOW_REPEATED, 0)
        return marked

    @property
    def removed(self) -> NDArray[np.bool_]:
        """Which of them are no more."""
        marked: NDArray[np.bool_] = np.not_equal(self.how & _core.HOW_REMOVED, 0)
        return marked

    @property
    def names(self) -> list[str]:
        name = self._table.name
        return [name(index) or "" for index in self.indices.tolist()]

    @property
    def values(self) -> list[Any]:
        """As Python objects; None for those that are no more."""
        return self._table.values_at(self.indices)

    def items(self) -> Iterator[tuple[str, Any, int]]:
        """(name, value, event_ns) of each."""
        return zip(self.names, self.values, self.times.tolist(), strict=True)

    def keep(self) -> Changes:
        """Read numbers and times now: whoever looks later sees what came then, not what came since."""
        self.numbers, self.times  # noqa: B018 - reading them is the point
        return self

    def __repr__(self) -> str:
        return f"<Changes of {len(self)} variables of {self.owner}>"
