"""What a participant hears: a buffer for each speaker, mixed into one block a slot; and what can be said of it. Pure.

The playback worklet of the page does the same with the same parts in JavaScript (`page/playback.js`).
"""

from __future__ import annotations

from collections import Counter

from ringcast.conference.sound.blocks import Block, Format, Samples
from ringcast.conference.sound.buffers import SpeakerBuffer
from ringcast.conference.sound.mixing import MIXERS

FORGET_SLOTS = 190
"""A speaker of whom nothing came for so long (six seconds) has left, and its buffer goes."""


class Playback:
    def __init__(self, form: Format, scheme: str = "speakers", max_s: int = 2, max_t: int = 6, start: int = 1) -> None:
        self._form = form
        self._bounds = max_s, max_t, start
        self._buffers: dict[int, SpeakerBuffer] = {}
        self._quiet: dict[int, int] = {}
        self.mixer = MIXERS[scheme](form)
        self.received: Counter[int] = Counter()
        self.misfits = 0
        """Blocks of another format than this conference's."""
        self._gone: Counter[str] = Counter()

    def hear(self, block: Block) -> None:
        if block.form != self._form:
            self.misfits += 1
            return
        buffer = self._buffers.get(block.participant)
        if buffer is None:
            buffer = self._buffers[block.participant] = SpeakerBuffer(*self._bounds)
        buffer.put(block.number, block.silent, block.samples)
        self._quiet[block.participant] = 0
        self.received[block.participant] += 1

    def play(self, publishers: int) -> Samples:
        """The block for this slot."""
        streams = [samples for buffer in self._buffers.values() if (samples := buffer.take()) is not None]
        for participant in list(self._quiet):
            self._quiet[participant] += 1
            if self._quiet[participant] > FORGET_SLOTS:
                self._forget(participant)
        return self.mixer.mix(streams, publishers)

    def discarded(self) -> dict[str, int]:
        """silence, talk, late and empty, over all speakers that were ever heard."""
        total = Counter(self._gone)
        for buffer in self._buffers.values():
            total += _counts(buffer)
        return {name: total[name] for name in ("silence", "talk", "late", "empty")}

    def _forget(self, participant: int) -> None:
        del self._quiet[participant]
        self._gone += _counts(self._buffers.pop(participant))


def _counts(buffer: SpeakerBuffer) -> Counter[str]:
    return Counter(silence=buffer.silence_discarded, talk=buffer.talk_discarded, late=buffer.late, empty=buffer.empty)
