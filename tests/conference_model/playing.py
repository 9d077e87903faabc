"""The game (paper 000, Figure 17): one moves the sight, the others fire at a moving target.

Whoever starts a game owns it: moves the sight, and decides each shot, in the order in which shots reach the owner. So
of two who fire at the same moment one hits: a target that was hit is down for half a second, and up again elsewhere.
There are so many shots, for all together, and so much time; the hits are the one score of all.

The target is a function of the game's seed, its hits so far and the time, in whole numbers: the same for everybody,
and never sent.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.conference.presence import Fire, Start, State

EXTENT = 10_000
LEG_MS = 1_000
"""So long the target goes straight."""
HIT = 700
"""So near the sight must be."""
DOWN_MS = 500
"""So long after a hit nobody hits again."""
SHOTS = 20
SECONDS = 30
_MASK = 0xFFFFFFFF


class Spot(NamedTuple):
    x: int
    y: int


def target(seed: int, hits: int, elapsed_ms: int) -> Spot:
    leg, into = divmod(max(0, elapsed_ms), LEG_MS)
    (x0, y0), (x1, y1) = _corner(seed, hits, leg), _corner(seed, hits, leg + 1)
    return Spot(x0 + _share(x1 - x0, into), y0 + _share(y1 - y0, into))


def _corner(seed: int, hits: int, leg: int) -> Spot:
    word = _mixed((seed + 0x9E3779B9 * (hits + 1) + 0x85EBCA6B * (leg + 1)) & _MASK)
    return Spot(word % EXTENT, _mixed(word) % EXTENT)


def _mixed(word: int) -> int:
    """The last steps of MurmurHash3 (Austin Appleby, public domain): every bit of the result depends on all bits."""
    word ^= word >> 16
    word = word * 0x85EBCA6B & _MASK
    word ^= word >> 13
    word = word * 0xC2B2AE35 & _MASK
    return word ^ word >> 16


def _share(way: int, into: int) -> int:
    """Towards zero."""
    part = abs(way) * into // LEG_MS
    return part if way >= 0 else -part


class Game:
    """The owner's side. Times are milliseconds since the start, and given by the caller."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.sight = Spot(EXTENT // 2, EXTENT // 2)
        self.score = 0
        self.shots = start.shots
        self.last_by = 0
        self.last_hit = False
        self._up_ms = 0
        self._fired: set[tuple[int, int]] = set()

    def over(self, elapsed_ms: int) -> bool:
        return self.shots == 0 or elapsed_ms >= self.start.seconds * 1000

    def aim(self, x: int, y: int) -> None:
        self.sight = Spot(min(EXTENT, max(0, x)), min(EXTENT, max(0, y)))

    def fire(self, shot: Fire, elapsed_ms: int) -> bool:
        """Whether it hit. A shot after the end, of another game, by the owner, or told twice is none."""
        known = (shot.id, shot.n) in self._fired
        if known or shot.game != self.start.game or shot.id == self.start.id or self.over(elapsed_ms):
            return False
        self._fired.add((shot.id, shot.n))
        self.shots -= 1
        spot = target(self.start.seed, self.score, elapsed_ms)
        near = (spot.x - self.sight.x) ** 2 + (spot.y - self.sight.y) ** 2 <= HIT**2
        hit = near and elapsed_ms >= self._up_ms
        if hit:
            self.score += 1
            self._up_ms = elapsed_ms + DOWN_MS
        self.last_by, self.last_hit = shot.id, hit
        return hit

    def state(self, elapsed_ms: int) -> State:
        return State(
            id=self.start.id, game=self.start.game, elapsed=elapsed_ms, x=self.sight.x, y=self.sight.y,
            score=self.score, shots=self.shots, over=self.over(elapsed_ms), last_by=self.last_by,
            last_hit=self.last_hit,
        )  # fmt: skip


class Table:
    """Everybody's side: which game counts. A second start while one runs is refused; of two that crossed on their way
    the earlier counts, for everybody, then the smaller participant."""

    PATIENCE_MS = 3_000
    """An owner that says nothing for so long has left."""

    def __init__(self) -> None:
        self.start: Start | None = None
        self.state: State | None = None
        self._heard_ms = 0

    def running(self, now_ms: int) -> bool:
        if self.start is None or (self.state is not None and self.state.over):
            return False
        return now_ms - self._heard_ms < self.PATIENCE_MS

    def started(self, start: Start, now_ms: int) -> bool:
        """False when another game is running, and this start counts for nothing."""
        if self.running(now_ms):
            assert self.start is not None
            if start.game == self.start.game:
                return True
            if self.state is not None or (start.at, start.id) >= (self.start.at, self.start.id):
                return False
        self.start, self.state, self._heard_ms = start, None, now_ms
        return True

    def told(self, state: State, now_ms: int) -> bool:
        """False for what another than the owner says, or about another game."""
        if self.start is None or state.game != self.start.game or state.id != self.start.id:
            return False
        self.state, self._heard_ms = state, now_ms
        return True
