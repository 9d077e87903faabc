"""How fast publishers send, measured in their rings, and the factors that follow from it for rates asked for.

Invariant: one rate of one publisher has one factor on this node, whoever asked for it, so equal requests share one
ring. Looks at rings only when asked; has no clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringcast import _core
from ringcast.daemon.rings.ring import Ring
from ringcast.errors import BrokenError, HistoryError
from ringcast.scaling.temporal import Pace, Sample, publisher_hz


class Paces:
    """`on_first` is called when somebody asks for a rate and nobody did before."""

    def __init__(self, on_first: Callable[[], None] = lambda: None) -> None:
        self._paces: dict[tuple[int, float], Pace] = {}
        self._on_first = on_first

    def every(self, ring: Ring, rate_hz: float) -> int:
        """The factor now; `ring` has the publisher's whole stream. Measured the first time it is asked for."""
        pace = self._paces.get((ring.info.incarnation, rate_hz))
        return pace.every if pace is not None else self.follow(ring, rate_hz)

    def follow(self, ring: Ring, rate_hz: float) -> int:
        """Measure, and adapt the factor."""
        if not self._paces:
            self._on_first()
        pace = self._paces.setdefault((ring.info.incarnation, rate_hz), Pace(rate_hz))
        return pace.follow(measured_hz(ring))

    def keep(self, incarnations: set[int]) -> None:
        """Forget publishers other than these."""
        for key in [key for key in self._paces if key[0] not in incarnations]:
            del self._paces[key]


def measured_hz(ring: Ring) -> float:
    """0 when it cannot be told."""
    history = _core.RingHistory()
    try:
        memory = ring.files[0].open()
        history.attach(
            memory.fileno(), depth=ring.row.depth, capacity_bytes=ring.row.capacity_bytes, incarnation=ring.ring
        )
        return publisher_hz(_samples(history))
    except (HistoryError, BrokenError):
        return 0.0
    finally:
        history.close()


def _samples(history: _core.RingHistory) -> Iterator[Sample]:
    """Ever further back: some of many messages tell as much as all."""
    back = 0
    while True:
        try:
            message = history.latest(back, copy=False)
        except HistoryError:
            return
        yield Sample(message.seq, message.sent_ns)
        back = back * 3 // 2 + 1
