"""A receiver's buffer for one speaker (paper 000, section 4.1): order, lateness, Max_S and Max_T.

Blocks wait here between the network and the next slot of the loudspeaker. Invariants: they leave in the order of their
numbers, each at most once; no more than `max_t` wait, so the delay is bounded by `max_t` blocks. When more than `max_s`
wait, silence is discarded, the oldest first; when more than `max_t` wait and none of it is silence, the oldest talk is.

A stall of the network leaves blocks behind that would delay a speaker for good. So when more than `SPARE` were left
over in each of the last `settle` slots, those beyond it are discarded, silence first, and the delay is again what the
network needs. The paper's two bounds alone do that only in pauses. One block stays as a reserve: without it a delay
that varies by less than a slot would empty the buffer again and again.

Numbers count up modulo 2**32. A gap in them was suppressed as silence, or is late, or lost: the buffer does not wait.
"""

from __future__ import annotations

from ringcast.conference.sound.blocks import Samples

MAX_S = 2
MAX_T = 6
START = 1
SETTLE = 16
SPARE = 1
_HALF = 1 << 31
_RESTART = 1 << 12
"""A number so far behind (two minutes) is a microphone that started again, not a late block."""


class SpeakerBuffer:
    """`start` blocks are waited for before the first is played, and after the buffer ran empty."""

    def __init__(self, max_s: int = MAX_S, max_t: int = MAX_T, start: int = START, settle: int = SETTLE) -> None:
        if not 1 <= max_s <= max_t or not 1 <= start <= max_t:
            raise ValueError(f"1 <= max_s <= max_t and 1 <= start <= max_t, not {max_s}, {max_t} and {start}")
        self._max_s = max_s
        self._max_t = max_t
        self._start = start
        self._settle = settle
        self._slots = 0
        self._left_over = max_t
        self._waiting: list[tuple[int, bool, Samples]] = []
        self._last: int | None = None
        self._playing = False
        self.silence_discarded = 0
        self.talk_discarded = 0
        self.late = 0
        """Came after a later one had been played, or twice."""
        self.empty = 0
        """Slots in which there was nothing to play, since the first block."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, number: int, silent: bool, samples: Samples) -> None:
        if self._last is not None:
            behind = _distance(number, self._last)
            if behind >= _RESTART:
                self._waiting.clear()
                self._last = None
            elif behind >= 0:
                self.late += 1
                return
        at = len(self._waiting)
        while at > 0 and _distance(number, self._waiting[at - 1][0]) > 0:
            at -= 1
        if at > 0 and self._waiting[at - 1][0] == number:
            self.late += 1
            return
        self._waiting.insert(at, (number, silent, samples))
        self._trim()

    def take(self) -> Samples | None:
        """The block for this slot; None when there is none."""
        if not self._playing and len(self._waiting) >= self._start:
            self._playing = True
        if not self._playing or not self._waiting:
            if self._last is not None:
                self.empty += 1
            self._playing = False
            self._slots, self._left_over = 0, self._max_t
            return None
        number, _, samples = self._waiting.pop(0)
        self._last = number
        self._settled()
        return samples

    def _trim(self) -> None:
        while len(self._waiting) > self._max_s and self._discard_silence():
            pass
        while len(self._waiting) > self._max_t:
            self._discard_talk()

    def _settled(self) -> None:
        self._left_over = min(self._left_over, len(self._waiting))
        self._slots += 1
        if self._slots < self._settle:
            return
        for _ in range(self._left_over - SPARE):
            if not self._discard_silence():
                self._discard_talk()
        self._slots, self._left_over = 0, self._max_t

    def _discard_silence(self) -> bool:
        """False when there is none."""
        silent = next((at for at, waiting in enumerate(self._waiting) if waiting[1]), None)
        if silent is None:
            return False
        del self._waiting[silent]
        self.silence_discarded += 1
        return True

    def _discard_talk(self) -> None:
        del self._waiting[0]
        self.talk_discarded += 1


def _distance(first: int, second: int) -> int:
    """How far `second` is after `first`; negative when it is before."""
    return (second - first + _HALF) % (2 * _HALF) - _HALF
