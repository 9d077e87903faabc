"""Rumours about daemons: accepted, contradicted, passed on, and compared with those of others. Pure.

Invariants: what this daemon hears of itself that is not so, it contradicts; a daemon believed alive is not declared
dead on others' reports before it could object; what is news here is passed on once; a statement far from what is known
is believed of nobody but the daemon itself, where it was called (`doubtful`). Decides nothing about links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from ringcast.control.limits import COUNTER_STEP
from ringcast.control.peering import (
    MAX_RUMOURS,
    NodeRecord,
    PeerMessage,
    RosterDigest,
    RosterSummary,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.detector import Suspicions
from ringcast.daemon.mesh.core.links import Link, Links
from ringcast.daemon.mesh.core.roster import Roster, Status
from ringcast.daemon.mesh.core.timing import Timing


class RumourSpread:
    """`send(link, message)` is where messages go."""

    def __init__(
        self,
        roster: Roster,
        links: Links,
        suspicions: Suspicions,
        timing: Timing,
        rng: Random,
        send: Callable[[Link, PeerMessage], None],
        refused: Counter[str],
    ) -> None:
        self.due_ns: int | None = None
        self.quiet = False
        """This daemon said goodbye, and no longer contradicts."""
        self._roster = roster
        self._links = links
        self._suspicions = suspicions
        self._timing = timing
        self._rng = rng
        self._send = send
        self._refused = refused
        self._doubtful: list[NodeRecord] = []

    def take_doubtful(self) -> list[NodeRecord]:
        """Daemons of which two things are said that cannot both be: call them, and they will tell."""
        doubtful, self._doubtful = self._doubtful, []
        return doubtful

    def hear(self, rumour: Rumour, link: Link | None, now_ns: int) -> Status | None:
        """What is now thought of the daemon if that is news. Without a link it is this node's own finding."""
        record, status = rumour.record, Status(rumour.status)
        incarnation = record.incarnation
        if incarnation == self._roster.me.incarnation:
            self._contradict(rumour, link)
            return None
        known = self._roster.members.get(incarnation)
        itself = link is not None and link.peer == incarnation
        if link is not None and self._roster.is_far(record):
            if not itself or not self._links.proves(link) or status is Status.DEAD:
                self._refused["implausible rumour"] += 1
                self._doubtful.append(record)
                return None
            self._roster.correct(record, now_ns)
            self._suspicions.end(incarnation)
            return Status.ALIVE
        by_others = status is Status.DEAD and link is not None and not itself
        if by_others and not self._suspicions.hasten(incarnation, now_ns):
            # The other half of a partitioned mesh declared ours dead. Let it object before anything is withdrawn.
            status = Status.SUSPECT
        if self._roster.merge(record, status, now_ns, link.number if link else None):
            self._suspicions.end(incarnation)
            if status is Status.SUSPECT:
                self._suspicions.begin(incarnation, now_ns, len(self._roster), short=by_others)
                self.notify_suspect(incarnation)
            return status
        if known is not None and rumour.status != Status.DEAD:
            wrong = known.record != record if itself else known.status is Status.DEAD
            self.tell(link, [known.rumour] if wrong else [])
        return None

    def _contradict(self, rumour: Rumour, link: Link | None) -> None:
        """Contradict what others say of this daemon when it is wrong, with a higher counter."""
        me = self._roster.me
        if rumour.record.counter > me.counter + COUNTER_STEP:
            # No peer of this daemon believes so high a counter. Answering with a higher one would use the numbers up.
            self._refused["implausible rumour"] += 1
            self.tell(link, [self._roster.members[me.incarnation].rumour] if not self.quiet else [])
            return
        wrong = rumour.status != Status.ALIVE or rumour.record != me
        if wrong and rumour.record.counter >= me.counter and not self.quiet:
            self._roster.describe(above=rumour.record.counter)

    def notify_suspect(self, peer: int | None) -> None:
        """Tell a peer that it is suspected or thought dead, so that it can object."""
        member = self._roster.members.get(peer) if peer is not None else None
        if member is not None and member.status is not Status.ALIVE:
            self.tell(self._links.to(member.record.incarnation), [member.rumour])

    def tell(self, link: Link | None, rumours: list[Rumour]) -> None:
        for first in range(0, len(rumours), MAX_RUMOURS):
            if link is not None:
                self._send(link, Rumours(rumours=rumours[first : first + MAX_RUMOURS]))

    # ------------------------------------------------------------------ passing on

    def push(self, now_ns: int) -> None:
        """Pass news on when it is time: to everybody, or to some in a large mesh; comparison brings what they miss."""
        if not self._roster.news:
            self.due_ns = None
            return
        if self.due_ns is None:
            self.due_ns = now_ns + self._timing.push_of(len(self._roster))
        if now_ns < self.due_ns:
            return
        self.due_ns = None
        news = self._roster.take_news()
        peers = self._links.peers()
        fanout = self._timing.fanout_of(len(self._roster))
        for peer in peers if len(peers) <= fanout else self._rng.sample(peers, fanout):
            link = self._links.to(peer)
            self.tell(link, [rumour for rumour, by in news if link is not None and by != link.number])

    # ------------------------------------------------------------------ comparing

    def compare(self, link: Link, theirs: int) -> None:
        """The other side's roster has that sum."""
        if theirs != self._roster.keyed_sums.total:
            self._send(link, RosterSummary(sums=list(self._roster.keyed_sums.sums)))

    def summary(self, link: Link, message: RosterSummary) -> None:
        buckets = self._roster.keyed_sums.differing(message.sums)
        if buckets:
            self._send(link, RosterDigest(buckets=buckets, ranks=self._roster.ranks(buckets), answer=True))

    def digest(self, link: Link, message: RosterDigest) -> None:
        rumours, lacking = self._roster.compare(message.buckets, message.ranks)
        self.tell(link, rumours)
        if lacking and message.answer:
            self._send(link, RosterDigest(buckets=message.buckets, ranks=self._roster.ranks(message.buckets)))
