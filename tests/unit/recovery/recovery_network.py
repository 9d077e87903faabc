"""A publisher and receivers in virtual time, over links that do what a script of dice tells them.

The very stacks that run in daemons; what is delivered, lost and sent is recorded.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable
from random import Random

from ringcast import _core

KEY = 77
CHUNK = 100
MS = 1_000_000
HEADER_BYTES = 48


def datagrams(seq: int, body: bytes, *, key: int = KEY, sent_ns: int = 0, chunk: int = CHUNK) -> list[bytes]:
    pieces = max(1, -(-len(body) // chunk))
    return [
        _core.make_datagram(
            key=key, seq=seq, length=len(body), chunk=chunk, piece=i, data=body[i * chunk : (i + 1) * chunk],
            sent_ns=sent_ns,
        )
        for i in range(pieces)
    ]  # fmt: skip


def place(datagram: bytes) -> tuple[int, int]:
    """(sequence number, piece) of a data packet."""
    (offset,) = struct.unpack_from("<I", datagram, 4)
    (seq,) = struct.unpack_from("<Q", datagram, 16)
    (chunk,) = struct.unpack_from("<H", datagram, 44)
    return seq, offset // chunk


def kind(datagram: bytes) -> str:
    return ("data", "repair", "nak", "confirm", "heartbeat", "ack", "credit", "answer")[datagram[3] - 1]


class Network:
    def __init__(
        self,
        stages: list[str],
        *,
        receivers: int = 3,
        multicast: bool = True,
        every: int = 1,
        first_seq: int = 0,
        joins: dict[int, int] | None = None,
        seed: int = 1,
        keep: int | None = None,
        fate: Callable[[str, bytes], list[int]] = lambda _kind, _datagram: [MS // 5],
        tuning: dict[str, int] | None = None,
        **window: int,
    ) -> None:
        """`fate` says after how many ns each copy of a datagram arrives; none is loss. `keep`: messages in the ring."""
        tuning = {"group": receivers, **(tuning or {})}
        self.every, self.first_seq, self.keep = every, first_seq, keep
        self.now_ns = 1_000 * MS
        self.ring: dict[int, list[bytes]] = {}
        self.fate = fate
        self.delivered: list[list[bytes]] = [[] for _ in range(receivers)]
        self.lost: list[list[tuple[int, int]]] = [[] for _ in range(receivers)]
        self.wire: list[str] = []
        self.sending = _core.Sending(
            stages, self._read, lambda: min(self.ring, default=first_seq), key=KEY, receivers=receivers,
            multicast=multicast, first_seq=first_seq, every=every, tuning=tuning,
        )  # fmt: skip
        self.receiving = [
            _core.Receiving(
                stages, key=KEY, me=i, receivers=receivers, multicast=multicast, seed=seed * 1000 + i,
                first_seq=(joins or {}).get(i, first_seq), every=every, tuning=tuning, **window,
            )
            for i in range(receivers)
        ]  # fmt: skip
        self._queue: list[tuple[int, int, int, bytes]] = []
        self._order = itertools.count()

    def _read(self, seq: int, piece: int) -> bytes | None:
        pieces = self.ring.get(seq, [])
        return pieces[piece] if piece < len(pieces) else None

    def send(self, seq: int, body: bytes) -> None:
        self.ring[seq] = datagrams(seq, body, sent_ns=self.now_ns)
        if self.keep is not None:
            for old in sorted(self.ring)[: -self.keep]:
                del self.ring[old]
        for datagram in self.ring.get(seq, []):
            self._transmit(-1, "group", 0, datagram)
            self._do(-1, self.sending.on_sent(datagram, self.now_ns))

    def run(self, until_ns: int) -> None:
        while True:
            wakes = [self.sending.wake_at_ns, *(stack.wake_at_ns for stack in self.receiving)]
            at = max(min(min(wakes), self._queue[0][0] if self._queue else until_ns), self.now_ns)
            if at >= until_ns:
                self.now_ns = until_ns
                return
            self.now_ns = at
            while self._queue and self._queue[0][0] <= at:
                _, _, to, datagram = heapq.heappop(self._queue)
                stack = self.sending if to == -1 else self.receiving[to]
                self._do(to, stack.on_datagram(datagram, at))
            if self.sending.wake_at_ns <= at:
                self._do(-1, self.sending.tick(at))
            for i, stack in enumerate(self.receiving):
                if stack.wake_at_ns <= at:
                    self._do(i, stack.tick(at))

    def _do(self, who: int, actions: list[tuple]) -> None:  # type: ignore[type-arg]
        for action in actions:
            if action[0] == "deliver":
                self.delivered[who].append(action[1])
            elif action[0] == "lost":
                self.lost[who].append(action[1:])
            else:
                self._transmit(who, *action[1:])

    def _transmit(self, who: int, to: str, peer: int, datagram: bytes) -> None:
        self.wire.append(kind(datagram))
        everyone = [i for i in range(-1, len(self.receiving)) if i != who]
        for node in {"group": everyone, "publisher": [-1], "peer": [peer]}[to]:
            for delay in self.fate(kind(datagram), datagram):
                heapq.heappush(self._queue, (self.now_ns + max(delay, 1), next(self._order), node, datagram))


def dice(seed: int, loss: float, repeat: float, reorder: float, burst: int = 1) -> Callable[[str, bytes], list[int]]:
    """A fate that loses, repeats and delays anything at all; bursts lose several in a row."""
    rng = Random(seed)
    left = 0

    def fate(_kind: str, _datagram: bytes) -> list[int]:
        nonlocal left
        if left == 0 and rng.random() < loss / burst:
            left = burst
        if left > 0:
            left -= 1
            return []
        copies = 2 if rng.random() < repeat else 1
        return [MS // 5 + (rng.randrange(5 * MS) if rng.random() < reorder else 0) for _ in range(copies)]

    return fate
