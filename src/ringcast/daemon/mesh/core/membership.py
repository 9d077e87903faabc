"""Who belongs to the mesh: links and who is at their other ends, whom to call, and who no longer answers. Pure.

`(event, now_ns) -> actions`; no socket, clock or thread, and randomness only from `rng`. Invariants: nodes whose
messages get through end up with the same roster, however many were lost, repeated or reordered before; a living daemon
that is thought dead says otherwise as soon as it hears of it. Clocks are never compared: ages are told as durations,
all times are this node's own. Knows nothing of the tag table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from ringcast.control.peering import (
    PROTOCOL_VERSION,
    Ack,
    Hello,
    NodeRecord,
    PeerMessage,
    Ping,
    PingFor,
    Refusal,
    RosterDigest,
    RosterSummary,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.detector import Detector, Suspicions
from ringcast.daemon.mesh.core.dialling import Calls
from ringcast.daemon.mesh.core.events import (
    Action,
    Announce,
    Close,
    DialFailed,
    Doubted,
    Event,
    Foreign,
    Leave,
    LinkDown,
    Linked,
    LinkUp,
    Offence,
    Received,
    Scouted,
    Seeds,
    Send,
    Tick,
    Unlinked,
    Wanted,
)
from ringcast.daemon.mesh.core.links import Link, Links
from ringcast.daemon.mesh.core.names import Names
from ringcast.daemon.mesh.core.roster import SMALL, Roster, Status
from ringcast.daemon.mesh.core.rumours import RumourSpread
from ringcast.daemon.mesh.core.timing import Timing

MAX_REASON_CHARS = 1000


class Membership:
    """The membership of the daemon that `me` describes. `seeds` are addresses where others may be found."""

    def __init__(
        self, me: NodeRecord, *, rng: Random, now_ns: int, seeds: tuple[str, ...] = (), mesh: str = "",
        timing: Timing | None = None, refused: Counter[str] | None = None,
    ) -> None:  # fmt: skip
        self.mesh = mesh
        self.refused: Counter[str] = refused if refused is not None else Counter()
        self.timing = timing or Timing()
        self.roster = Roster(me)
        self.names = Names(self.roster, self.refused)
        self.links = Links(me.incarnation, self.timing, rng)
        self._calls = Calls(self.roster, self.links, self.timing, rng, seeds, now_ns, self.refused)
        self._detector = Detector(self.links, self.timing, rng)
        self._suspicions = Suspicions(self.timing)
        self._rumour_spread = RumourSpread(
            self.roster, self.links, self._suspicions, self.timing, rng, self._send, self.refused
        )
        self._started_ns = self._now_ns = self._probe_ns = now_ns
        self._unsettled = False
        self._out: list[Action] = []
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            LinkUp: self._link_up, LinkDown: self._link_down, DialFailed: self._dial_failed, Received: self._received,
            Offence: self._offence, Scouted: self._scouted, Announce: self._announced, Wanted: self._wanted,
            Seeds: lambda event: self._calls.seek(event.addresses, self._now_ns), Leave: self._leave,
            Tick: self._tick, Doubted: self._doubted,
        }  # fmt: skip
        self._readers: dict[type[Any], Callable[[Link, Any], None]] = {
            Ping: self._ping, Ack: self._ack, PingFor: self._ping_for, Rumours: self._rumours,
            RosterSummary: self._rumour_spread.summary, RosterDigest: self._rumour_spread.digest,
        }  # fmt: skip

    # ------------------------------------------------------------------ what the shell calls

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        self._now_ns = now_ns
        self._handlers[type(event)](event)
        if self._unsettled and len(self.roster) <= SMALL:
            self._call_the_missing()
        self._rumour_spread.push(now_ns)
        out, self._out = self._out, []
        return out

    def due_ns(self) -> int | None:
        """When `Tick` is to come; None when nothing will happen without another event."""
        probe_ns = self._probe_ns if len(self.roster) > 1 or self.links.numbered else None
        times = (probe_ns, self._calls.due_ns, self._rumour_spread.due_ns, self._detector.due_ns())
        return min((time for time in times if time is not None), default=None)

    @property
    def me(self) -> NodeRecord:
        return self.roster.me

    @property
    def serving(self) -> bool:
        """False while an older daemon has this one's name."""
        return not self.me.yields

    def link_to(self, name: str) -> int | None:
        """The link with the node of that name."""
        holder = self.names.holders.get(name)
        link = self.links.to(holder.incarnation) if holder else None
        return link.number if link else None

    def peer(self, link: int) -> NodeRecord | None:
        """Who is at the other end; None until it said so."""
        known = self.links.numbered.get(link)
        member = self.roster.members.get(known.peer) if known and known.peer is not None else None
        return member.record if member else None

    # ------------------------------------------------------------------ links

    def _link_up(self, event: LinkUp) -> None:
        link = Link(event.link, event.address, self._now_ns, self._now_ns - self._started_ns)
        self.links.add(link)
        hello = Hello(record=self.me, mesh=self.mesh, age_ns=link.age_ns, roster=self.roster.keyed_sums.total)
        self._send(link, hello)

    def _link_down(self, event: LinkDown) -> None:
        link = self.links.remove(event.link)
        if link is None:
            return
        if link.peer is None:
            if link.address is not None:
                self.links.failed(link.address, self._now_ns)
                self._calls.again(self._now_ns + self.timing.redial_ns)
            return
        member = self.roster.members.get(link.peer)
        if member is not None and self.links.to(link.peer) is None:
            self._unsettled = True
            self._out.append(Unlinked(member.record))
            if member.status is not Status.DEAD and link.peer in self.roster.neighbours():
                self._out += self._calls.reach(member.record, self._now_ns, patient=False)

    def _dial_failed(self, event: DialFailed) -> None:
        self.links.failed(event.address, self._now_ns)
        self._calls.again(self._now_ns + self.timing.redial_ns)
        for incarnation in self.roster.neighbours():
            record = self.roster.members[incarnation].record
            if event.address in record.control and self.links.to(incarnation) is None:
                if event.refused:
                    self._suspicions.refused(incarnation)
                self._probe(incarnation)

    def _received(self, event: Received) -> None:
        link, message = self.links.numbered.get(event.link), event.message
        if link is None:
            return
        link.heard_ns = self._now_ns
        if isinstance(message, Hello) and link.peer is None:
            self._hello(link, message)
        elif isinstance(message, Hello) and message.record.incarnation == link.peer:
            pass  # it says the same again
        elif isinstance(message, Refusal):
            self.links.note_refusal(link, message.reason)
            self._close(link, f"refused: {message.reason}")
        elif link.peer is None or type(message) not in self._readers:
            self._close(link, f"{type(message).__name__} out of turn")
        else:
            self._detector.heard(link.peer)
            self._readers[type(message)](link, message)

    def _offence(self, event: Offence) -> None:
        link = self.links.numbered.get(event.link)
        if link is not None:
            self._refuse(link, event.reason)

    def _hello(self, link: Link, hello: Hello) -> None:
        record = hello.record
        if hello.version != PROTOCOL_VERSION:
            self._refuse(link, f"this node speaks protocol {PROTOCOL_VERSION} and the other {hello.version}")
        elif hello.mesh != self.mesh:
            self._part_ways(link, hello.mesh)
        elif record.incarnation == self.me.incarnation:
            if link.address is not None:
                self.links.is_own(link.address)
            self._close(link, "this is me")
        else:
            first = self.links.identify(link, record.incarnation)
            self._bury_predecessors(record)
            self._hear(Rumour(record), link)
            if record.incarnation in self.roster.members:
                self._greeted(link, hello, first)
            else:
                self._refuse(link, "there are too many nodes in this mesh")

    def _part_ways(self, link: Link, mesh: str) -> None:
        """Refuse a node of another mesh, and do not call it again soon: it will not change its mind by itself."""
        reason = f"this node is of {_mesh(self.mesh)} and the other of {_mesh(mesh)}; give both the same --mesh to join"
        self._out.append(Foreign(link.number, mesh, reason))
        self._refuse(link, reason)
        if link.address is not None:
            self.links.shun(link.address, self._now_ns + self.timing.foreign_ns)

    def _greeted(self, link: Link, hello: Hello, first: bool) -> None:
        peer = hello.record.incarnation
        self._suspicions.answered(peer)
        if link.address is not None:
            self.links.refusals.pop(link.address, None)
            self._calls.answered(link.address, peer)
            self._disprove(link.address, peer)
        self._out += self.names.meet(link.age_ns, hello, self._now_ns, proven=self.links.proves(link))
        self._call_claimants()
        self._rumour_spread.notify_suspect(link.peer)
        self._out += self._detector.linked(peer)
        if first:
            self._out.append(Linked(link.number, self.roster.members[peer].record))
        surplus = self.links.superfluous(peer)
        if surplus is not None:
            self._close(surplus, "there is another link", gently=True)
        if link.dialled:
            self._rumour_spread.compare(link, hello.roster)

    def _call_claimants(self) -> None:
        """A daemon that claims this one's name and is older must answer at the address that it gives."""
        for record in self.names.unproven():
            self._out += self._calls.verify(record, self._now_ns)

    def _bury_predecessors(self, record: NodeRecord) -> None:
        """A daemon that answers where another of its name did has taken its place."""
        for other in self.roster.named(record.name):
            same = other.incarnation in (record.incarnation, self.me.incarnation)
            if not same and set(other.control) & set(record.control) and self.links.to(other.incarnation) is None:
                self._hear(Rumour(other, Status.DEAD), None)

    def _disprove(self, address: str, peer: int) -> None:
        """Other daemons that claim the address are not there: probe them, and do not dial the address for them at
        once."""
        for other in self.roster.neighbours():
            if other != peer and address in self.roster.members[other].record.control and self.links.to(other) is None:
                self.links.failed(address, self._now_ns)
                self._probe(other)

    # ------------------------------------------------------------------ whom this node wants

    def _call_the_missing(self) -> None:
        self._unsettled = False
        self._out += self._calls.missing(self._now_ns)

    def _scouted(self, event: Scouted) -> None:
        self.links.forgive(event.address)
        if not self.roster.is_here(event.incarnation):
            self._out += self._calls.scouted(event.address, self._now_ns)

    def _wanted(self, event: Wanted) -> None:
        holder = self.names.holders.get(event.node)
        link = self.links.to(holder.incarnation) if holder else None
        if link is not None:
            link.used_ns = self._now_ns
        elif holder is not None:
            self._out += self._calls.reach(holder, self._now_ns, patient=False)

    def _doubted(self, event: Doubted) -> None:
        record = self.peer(event.link)
        if record is not None:
            self._out += self._calls.verify(record, self._now_ns)

    def proven_host(self, number: int, remote: str) -> str | None:
        """An address that is surely the daemon's at the other end of a link, which comes from `remote`."""
        link, record = self.links.numbered.get(number), self.peer(number)
        return self.links.proven_host(link, record, remote) if link is not None and record is not None else None

    def _announced(self, event: Announce) -> None:
        changes = {key: value for key, value in event._asdict().items() if value not in (None, getattr(self.me, key))}
        if changes:
            self.roster.describe(**changes)

    def _leave(self, event: Leave) -> None:
        """Tell everybody that this node ends, so that nobody has to detect it."""
        self._rumour_spread.quiet = True
        self.roster.describe()
        self.roster.news.clear()
        for peer in self.links.peers():
            self._rumour_spread.tell(self.links.to(peer), [Rumour(self.me, Status.DEAD)])

    # ------------------------------------------------------------------ rumours

    def _rumours(self, link: Link, message: Rumours) -> None:
        for rumour in message.rumours:
            self._hear(rumour, link)

    def _hear(self, rumour: Rumour, link: Link | None) -> None:
        known = self.roster.members.get(rumour.record.incarnation)
        status = self._rumour_spread.hear(rumour, link, self._now_ns)
        for record in self._rumour_spread.take_doubtful():
            self._out += self._calls.verify(record, self._now_ns)
        if status is None:
            return
        if known is not None and known.record.name != rumour.record.name:
            self._out += self.names.settle(known.record.name)
        self._unsettled = True
        if status is Status.DEAD:
            self._part_with(rumour.record.incarnation)
        self._out += self.names.settle(rumour.record.name)

    def _part_with(self, incarnation: int) -> None:
        """It is dead. A link that still stands goes, or its silence would keep us from calling when it returns."""
        self._suspicions.answered(incarnation)
        self._detector.unreachable(incarnation)
        self._rumour_spread.notify_suspect(incarnation)
        while (link := self.links.to(incarnation)) is not None:
            self._close(link, "thought dead")

    # ------------------------------------------------------------------ who no longer answers

    def _ping(self, link: Link, message: Ping) -> None:
        self._send(link, Ack(seq=message.seq))
        self._rumour_spread.notify_suspect(link.peer)
        self._rumour_spread.compare(link, message.roster)

    def _ack(self, link: Link, message: Ack) -> None:
        self._out += self._detector.acked(message.seq)
        self._rumour_spread.notify_suspect(link.peer)

    def _ping_for(self, link: Link, message: PingFor) -> None:
        self._out += self._detector.help(link.number, message, self.roster.keyed_sums.total)
        member = self.roster.members.get(message.target)
        if member is not None and self.links.to(message.target) is None:
            self._out += self._calls.reach(member.record, self._now_ns, patient=False)

    def _probe(self, incarnation: int) -> None:
        self._out += self._detector.probe(incarnation, self.roster.keyed_sums.total, self._now_ns)

    def _tick(self, event: Tick) -> None:
        now_ns = self._now_ns
        if now_ns >= self._probe_ns:
            self._probe_ns = now_ns + self.timing.probe_ns
            target = self._detector.next_target(self.roster.neighbours())
            if target is not None:
                self._probe(target)
            self._tidy()
            self._call_the_missing()
            self._call_claimants()
        elif self._calls.due_ns is not None and now_ns >= self._calls.due_ns:
            self._call_the_missing()
        sends, missing = self._detector.expire(now_ns)
        self._out += sends
        for incarnation in missing:
            if incarnation in self.roster.members:
                self._hear(Rumour(self.roster.members[incarnation].record, Status.SUSPECT), None)
        for incarnation, since_ns in self._suspicions.expired(now_ns):
            self._give_up(incarnation, since_ns)

    def _give_up(self, incarnation: int, since_ns: int) -> None:
        link = self.links.to(incarnation)
        if link is not None and link.heard_ns > since_ns:
            # It is alive; only the message with its suspicion was lost.
            self._suspicions.begin(incarnation, self._now_ns, len(self.roster), short=True)
            self._rumour_spread.notify_suspect(incarnation)
        else:
            self._hear(Rumour(self.roster.members[incarnation].record, Status.DEAD), None)

    def _tidy(self) -> None:
        for link, reason, gently in self.links.surplus(set(self.roster.neighbours()), self._now_ns):
            if link.number in self.links.numbered:  # or it was closed for another reason just now
                self._close(link, reason, gently=gently)
        self.roster.forget_dead(self._now_ns - self.timing.forget_ns)

    # ------------------------------------------------------------------ decide, then act

    def _send(self, link: Link, message: PeerMessage) -> None:
        self._out.append(Send(link.number, message))

    def _refuse(self, link: Link, reason: str) -> None:
        self.links.note_refusal(link, reason)
        self._send(link, Refusal(reason=reason[:MAX_REASON_CHARS]))
        self._close(link, reason)

    def _close(self, link: Link, reason: str, *, gently: bool = False) -> None:
        self._out.append(Close(link.number, reason, gently))
        self._link_down(LinkDown(link.number))


def _mesh(name: str) -> str:
    return f"mesh {name!r}" if name else "the mesh without a name"
