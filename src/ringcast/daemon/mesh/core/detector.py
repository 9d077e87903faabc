"""Finding out who no longer answers: ping, then ask others to ping, then say so (SWIM). Pure.

Invariant: a target is to be suspected only after it answered neither a ping of this node nor those of up to `HELPERS`
others, all within the given times; hearing anything from it ends a probe. Suspects have time to object. Membership
decides who is told of a suspicion.
"""

from __future__ import annotations

from random import Random

from ringcast.control.peering import Ack, Ping, PingFor
from ringcast.daemon.mesh.core.events import Send
from ringcast.daemon.mesh.core.links import Links
from ringcast.daemon.mesh.core.timing import Timing

HELPERS = 3
MAX_RELAYS = 256


class _Probe:
    __slots__ = ("deadline_ns", "direct", "seq", "target")

    def __init__(self, seq: int, target: int, deadline_ns: int) -> None:
        self.seq = seq
        self.target = target
        self.deadline_ns = deadline_ns
        self.direct = True


class Detector:
    def __init__(self, links: Links, timing: Timing, rng: Random) -> None:
        self._links = links
        self._timing = timing
        self._rng = rng
        self._seq = 0
        self._probes: dict[int, _Probe] = {}  # by target
        self._queue: list[int] = []
        self._relays: dict[int, tuple[int, int]] = {}  # our ping: who asked for it, and as what
        self._awaited: dict[int, list[tuple[int, int]]] = {}  # target not linked: who asks

    def due_ns(self) -> int | None:
        return min((probe.deadline_ns for probe in self._probes.values()), default=None)

    def next_target(self, neighbours: list[int]) -> int | None:
        """Everyone in turn, each turn in another order, so that the time until a failure is seen is bounded."""
        present = set(neighbours)
        while True:
            if not self._queue:
                self._queue = sorted(present)
                self._rng.shuffle(self._queue)
            if not self._queue:
                return None
            target = self._queue.pop()
            if target in present:
                return target

    def probe(self, target: int, roster: int, now_ns: int) -> list[Send]:
        if target in self._probes:
            return []
        link = self._links.to(target)
        probe = self._probes[target] = _Probe(self._next(), target, now_ns + self._timing.ack_ns)
        if link is None:
            return self._ask_others(probe, now_ns)
        return [Send(link.number, Ping(seq=probe.seq, roster=roster))]

    def expire(self, now_ns: int) -> tuple[list[Send], list[int]]:
        """What to send because answers are missing, and who is to be suspected."""
        sends: list[Send] = []
        missing = []
        for probe in [p for p in self._probes.values() if p.deadline_ns <= now_ns]:
            if probe.direct:
                sends += self._ask_others(probe, now_ns)
            if probe.deadline_ns <= now_ns:
                del self._probes[probe.target]
                missing.append(probe.target)
        return sends, missing

    def heard(self, peer: int) -> None:
        self._probes.pop(peer, None)

    def acked(self, seq: int) -> list[Send]:
        """An answer to a ping of this node, or to one it asked for."""
        for probe in self._probes.values():
            if probe.seq == seq:
                del self._probes[probe.target]
                break
        asked = self._relays.pop(seq, None)
        return self._pass_on([asked]) if asked else []

    # ------------------------------------------------------------------ helping others

    def help(self, link: int, request: PingFor, roster: int) -> list[Send]:
        """Ping on behalf of another. With no link to the target, its appearing (`linked`) is the answer."""
        target = self._links.to(request.target)
        if target is None:
            askers = self._awaited.setdefault(request.target, [])
            del askers[:-HELPERS]
            askers.append((link, request.seq))
            if len(self._awaited) > MAX_RELAYS:
                del self._awaited[next(iter(self._awaited))]
            return []
        seq = self._next()
        self._relays[seq] = (link, request.seq)
        if len(self._relays) > MAX_RELAYS:
            del self._relays[next(iter(self._relays))]
        return [Send(target.number, Ping(seq=seq, roster=roster))]

    def linked(self, peer: int) -> list[Send]:
        self.heard(peer)
        return self._pass_on(self._awaited.pop(peer, []))

    def unreachable(self, peer: int) -> None:
        self._awaited.pop(peer, None)

    def _pass_on(self, asked: list[tuple[int, int]]) -> list[Send]:
        return [Send(link, Ack(seq=seq)) for link, seq in asked if link in self._links.numbered]

    def _ask_others(self, probe: _Probe, now_ns: int) -> list[Send]:
        probe.direct = False
        others = sorted(peer for peer in self._links.peers() if peer != probe.target)
        helpers = [self._links.to(peer) for peer in self._rng.sample(others, min(HELPERS, len(others)))]
        probe.deadline_ns = now_ns + (self._timing.probe_ns if helpers else 0)
        return [Send(h.number, PingFor(seq=probe.seq, target=probe.target)) for h in helpers if h is not None]

    def _next(self) -> int:
        self._seq += 1
        return self._seq


class Suspicions:
    """How long each suspect still has to object."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._waits: dict[int, tuple[int, int]] = {}  # from, until
        self._refused: set[int] = set()

    def begin(self, incarnation: int, now_ns: int, nodes: int, *, short: bool = False) -> None:
        """The wait is always short when the suspect's host says that nobody listens there."""
        short = short or incarnation in self._refused
        wait_ns = self._timing.refused_ns if short else self._timing.suspicion_of(nodes)
        self._waits[incarnation] = (now_ns, now_ns + wait_ns)

    def hasten(self, incarnation: int, now_ns: int) -> bool:
        """Others gave it up: it has a short time in all. Whether that is over."""
        since_ns, until_ns = self._waits.get(incarnation, (now_ns, 0))
        if incarnation in self._waits:
            self._waits[incarnation] = (since_ns, min(until_ns, since_ns + self._timing.refused_ns))
        return now_ns - since_ns >= self._timing.refused_ns

    def end(self, incarnation: int) -> None:
        self._waits.pop(incarnation, None)

    def expired(self, now_ns: int) -> list[tuple[int, int]]:
        """Whose time is up, and since when it ran."""
        waits = self._waits.items()
        return [(incarnation, since_ns) for incarnation, (since_ns, until_ns) in waits if until_ns <= now_ns]

    def refused(self, incarnation: int) -> None:
        """Its host answered that nobody listens there."""
        self._refused.add(incarnation)

    def answered(self, incarnation: int) -> None:
        self._refused.discard(incarnation)
