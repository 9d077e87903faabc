"""A participant without a window: sound from a file, a test picture; for tests, load and demonstrations.

Everything happens in slots of one block (32 ms), on a grid that all participants of a machine share: receive what has
come, mix it, send one block, and now and then a picture. Nothing wakes this process in between.
"""

from __future__ import annotations

import random
import time
import wave
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import ringcast
from ringcast.conference import sources
from ringcast.conference.media import MEDIA, tag_name
from ringcast.conference.playback import Playback
from ringcast.conference.presence import SAID_EVERY_MS, BadValue, Gone, Here, Roll
from ringcast.conference.presence import read_untrusted as read_control
from ringcast.conference.sound.blocks import FORMATS, BadBlock, Format, Samples, pack, to_bytes, unpack_untrusted
from ringcast.conference.sound.silence import THRESHOLD, is_silent

LATE_SLOTS = 3
"""A block that is not there three slots after its own has missed its moment (paper 000: played in the period after)."""
REST_SLOTS = 8
"""What is on its way when the last of the others goes has so long to arrive."""
_MANY = 4096


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a participant does."""

    conference: str = "main"
    name: str = "headless"
    audio: str = "silence"
    video: str = "none"
    seconds: float = 30.0
    form: int = 1
    scheme: str = "speakers"
    threshold: float = THRESHOLD
    suppress: bool = False
    fps: float = 10.0
    save: str = ""
    linger_s: float = 0.25
    """After the last word: receive for so long, or until all others have gone."""
    subscribes: tuple[str, ...] = tuple(medium.name for medium in MEDIA)
    delays: bool = False
    """Whether the account has the delay of every block."""


class Account(msgspec.Struct, kw_only=True):
    """What came of it. `late` are blocks that came more than `LATE_SLOTS` slots after their own."""

    name: str
    node: str
    participant: int
    sent: int = 0
    silent: int = 0
    suppressed: int = 0
    received: dict[str, int] = {}
    lost: int = 0
    late: int = 0
    delay_ms: dict[str, float] = {}
    delays_ms: list[float] = []
    """Of every block, where the plan asks for them."""
    discarded: dict[str, int] = {}
    overflows: int = 0
    malformed: int = 0
    missed_slots: int = 0
    """Slots whose work ended after the slot."""
    frames_sent: int = 0
    frames_received: int = 0
    frames_lost: int = 0
    seen: list[str] = []


class Participant:
    """Raises as `session.tag` and `tag.publisher` do, and NoSound."""

    def __init__(self, session: ringcast.Session, plan: Plan) -> None:
        self._plan = plan
        self._session = session
        self._form: Format = FORMATS[plan.form]
        self._blocks = sources.sound(plan.audio, self._form)
        self._playback = Playback(self._form, plan.scheme)
        self._roll = Roll()
        self._talks = False
        self._delays: list[float] = []
        self._mixed: list[bytes] = []
        self.account = Account(name=plan.name, node=session.node, participant=random.SystemRandom().getrandbits(32))

    def run(self, ready: Callable[[], float] = lambda: 0.0) -> Account:
        """Take part for as long as the plan says. `ready` is called when everything is open, and says when to begin
        (seconds, UTC; what is past means at once)."""
        with ExitStack() as stack:
            pubs, subs = self._open(stack)
            slot = self._go(pubs, subs, ready())
            pubs["control"].send(msgspec.json.encode(Gone(id=self.account.participant)))
            self._linger(subs, slot)
            self._sum_up(subs)
        if self._plan.save:
            self._write(Path(self._plan.save))
        return self.account

    def _open(self, stack: ExitStack) -> tuple[dict[str, Any], dict[str, Any]]:
        plan = self._plan
        publishes = {"audio", "control", *(["video"] if plan.video != "none" else [])}
        pubs, subs = {}, {}
        for medium in MEDIA:
            if medium.name not in publishes and medium.name not in plan.subscribes:
                continue
            tag = self._session.tag(tag_name(plan.conference, medium.name), **medium.options)
            if medium.name in plan.subscribes:
                subs[medium.name] = stack.enter_context(tag.subscribe(reliable=medium.reliable))
            if medium.name in publishes:
                pubs[medium.name] = stack.enter_context(tag.publisher("skip"))
        return pubs, subs

    # ---------------------------------------------------------------- slots

    def _go(self, pubs: dict[str, Any], subs: dict[str, Any], begin_s: float) -> int:
        """Returns the first slot after the last word."""
        period = self._form.block_ns
        first = max(int(begin_s * 1e9), time.time_ns()) // period + 1
        slots = round(self._plan.seconds * 1e9 / period)
        for slot in range(first, first + slots):
            _sleep_until(slot * period)
            self._receive(subs, slot)
            self._speak(pubs["audio"], slot)
            self._show(pubs.get("video"), slot - first)
            if (slot - first) * period // 1_000_000 % SAID_EVERY_MS < period // 1_000_000:
                self._say_here(pubs)
            self.account.missed_slots += time.time_ns() // period > slot
        return first + slots

    def _linger(self, subs: dict[str, Any], slot: int) -> None:
        period = self._form.block_ns
        last = slot + round(self._plan.linger_s * 1e9 / period)
        rest = REST_SLOTS
        while slot < last and rest:
            _sleep_until(slot * period)
            self._receive(subs, slot)
            others = [
                here for here in self._roll.here(slot * period // 1_000_000) if here.id != self.account.participant
            ]
            rest = REST_SLOTS if others else rest - 1
            slot += 1

    def _speak(self, publisher: Any, slot: int) -> None:
        samples = next(self._blocks)
        silent = is_silent(self._form, samples, self._plan.threshold)
        self.account.silent += silent
        self._talks = not silent
        if silent and self._plan.suppress:
            self.account.suppressed += 1
            return
        data = pack(self._form, self.account.participant, slot, samples, silent=silent)
        publisher.send(data, slot * self._form.block_ns, silent)
        self.account.sent += 1

    def _show(self, publisher: Any, slot: int) -> None:
        if publisher is None:
            return
        due = int(slot * self._form.block_ns / 1e9 * self._plan.fps)
        if due >= self.account.frames_sent:
            publisher.send(sources.picture(self.account.frames_sent, self.account.participant))
            self.account.frames_sent += 1

    def _receive(self, subs: dict[str, Any], slot: int) -> None:
        period = self._form.block_ns
        for message in _waiting(subs.get("audio")):
            try:
                block = unpack_untrusted(message.data)
            except BadBlock:
                self.account.malformed += 1
                continue
            if block.participant == self.account.participant:
                continue
            self._delays.append((message.received_ns - message.event_ns) / 1e6)
            self.account.late += slot * period - message.event_ns > LATE_SLOTS * period
            self._playback.hear(block)
        for message in _waiting(subs.get("control")):
            try:
                value = read_control(message.data)
            except BadValue:
                self.account.malformed += 1
                continue
            if isinstance(value, Here | Gone):
                self._roll.take(value, slot * period // 1_000_000)
                if isinstance(value, Here) and value.name not in self.account.seen:
                    self.account.seen.append(value.name)
        self.account.frames_received += len(_waiting(subs.get("video")))
        for reliable in ("whiteboard", "chat"):
            _waiting(subs.get(reliable))
        self._play(slot * period // 1_000_000)

    def _play(self, now_ms: int) -> None:
        publishers = sum("audio" in here.publishes for here in self._roll.here(now_ms))
        mixed: Samples = self._playback.play(publishers)
        if self._plan.save:
            self._mixed.append(to_bytes(self._form, mixed))

    def _say_here(self, pubs: dict[str, Any]) -> None:
        streams = {medium: str(publisher.incarnation) for medium, publisher in pubs.items()}
        said = {
            "do": "here", "id": self.account.participant, "name": self._plan.name, "publishes": list(pubs),
            "subscribes": list(self._plan.subscribes), "streams": streams, "node": self.account.node,
            "talks": self._talks,
        }  # fmt: skip
        here = msgspec.convert(said, Here)
        pubs["control"].send(msgspec.json.encode(here))

    # ---------------------------------------------------------------- the end

    def _sum_up(self, subs: dict[str, Any]) -> None:
        account = self.account
        account.received = {f"{participant:08x}": n for participant, n in sorted(self._playback.received.items())}
        account.lost = subs["audio"].lost if "audio" in subs else 0
        account.frames_lost = subs["video"].lost if "video" in subs else 0
        account.discarded = self._playback.discarded()
        account.overflows = getattr(self._playback.mixer, "overflows", 0)
        if self._delays:
            marks = np.percentile(self._delays, [50, 95, 100])
            account.delay_ms = {
                name: round(float(at), 1) for name, at in zip(("p50", "p95", "max"), marks, strict=True)
            }
        if self._plan.delays:
            account.delays_ms = [round(delay, 3) for delay in self._delays]

    def _write(self, path: Path) -> None:
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(self._form.bits // 8)
            file.setframerate(self._form.rate_hz)
            file.writeframes(b"".join(self._mixed))


def _waiting(subscriber: Any) -> list[Any]:
    if subscriber is None:
        return []
    try:
        found: list[Any] = subscriber.recv_many(_MANY, timeout=0)
    except TimeoutError:
        return []
    return found


def _sleep_until(at_ns: int) -> None:
    left = at_ns - time.time_ns()
    if left > 0:
        time.sleep(left / 1e9)
