"""How the tag table spreads: changes are pushed at once, and neighbours compare their tables all the time. Pure.

A push reaches everybody in a small mesh and, passed on once by each who had not heard it, nearly everybody in a large
one; comparison (one sum, then sums of buckets, then versions, then the rows that are missing) brings the rest and heals
whatever was lost. Invariants: rows of a node are visible exactly while membership has the node and they carry its
current start number; no message is larger than a page or a digest of the nodes that are there. Knows links only as
somewhere to send.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from ringcast.control.limits import PLAUSIBLE_LIFE
from ringcast.control.peering import NodeRecord, Replication, TableDelta, TableDigest, TableSummary
from ringcast.daemon.mesh.core.events import Action, Changed, Send
from ringcast.daemon.mesh.core.links import Links
from ringcast.daemon.mesh.core.roster import SMALL
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.table.admission import admit
from ringcast.daemon.table.digest import BUCKETS, KeyedSums, key_of
from ringcast.daemon.table.pages import Page, cut, decode_page_untrusted
from ringcast.daemon.table.rows import Change, Delta
from ringcast.daemon.table.succession import Succession
from ringcast.daemon.table.table import Digest, TagTable

MAX_STRANGERS = 256
"""Rows may arrive before their node is known; of how many unknown nodes they are kept, hidden."""
CATCH_UP_NS = 200_000_000
"""How long a newcomer waits for more from the one that it asked before it asks others."""
_HAS_ALL = (2**63, 0)
_HAS_NOTHING = (-1, 0)


class Gossip:
    """Keeps `table` like those of the other nodes. Whoever writes this node's own rows says so (`local`).

    What happened is told first, by any of the methods; `finish` then returns what to do about it.
    """

    def __init__(self, table: TagTable, links: Links, timing: Timing, rng: Random, now_ns: int) -> None:
        self.silent = False
        """While another daemon has this one's name, it tells nothing."""
        self._table = table
        self._links = links
        self._timing = timing
        self._rng = rng
        self._succession = Succession(table)
        self._lives: dict[str, int] = {}  # of the nodes that are here, this one left out
        self._known: Digest = {}
        self._keyed_sums = KeyedSums()
        self._compared: list[set[str]] = [set() for _ in range(BUCKETS)]  # the names that the sums are made of
        self._theirs: dict[int, Digest] = {}  # what a peer is known to have
        self._news: dict[str, int] = {}  # node: the version up to which it is no news
        self._absent_ns: dict[str, int] = {}  # of whom something is known and who is not here, since when
        self._asked: tuple[int, int] | None = None  # a newcomer: by which link it asked, and until when it waits
        self._ask_later: dict[int, None] = {}  # links on which to compare after that
        self._push_ns: int | None = None
        self._settle_ns: int | None = None  # backups are left to appoint
        self._summary_ns = now_ns
        self._unsettled = False
        self._written = -1
        self._changes: list[Change] = []
        self._sends: list[Action] = []

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._lives) + 1

    @property
    def sum(self) -> int:
        """Equal on nodes that know the same rows of the same nodes."""
        return self._keyed_sums.total

    def version_of(self, node: str) -> tuple[int, int]:
        """The life and version up to which that node's rows are known here."""
        return self._known.get(node, _HAS_NOTHING)

    def due_ns(self) -> int | None:
        if self.silent:
            return None
        times = [self._summary_ns] if self._links.numbered else []
        times += [min(self._absent_ns.values()) + self._timing.forget_ns] if self._absent_ns else []
        times += [self._asked[1]] if self._asked is not None else []
        times += [time for time in (self._push_ns, self._settle_ns) if time is not None]
        return min(times, default=None)

    # ------------------------------------------------------------------ what happens

    def local(self, changes: list[Change]) -> None:
        """This node's own rows changed."""
        self._written = -1
        self._unsettled |= bool(changes)
        self._succession.noticed(changes)

    def node_up(self, record: NodeRecord) -> None:
        """A node is here, or has another start number than was known."""
        self._count(record.name, False)
        self._lives[record.name] = record.life
        if self._known.get(record.name, _HAS_NOTHING)[0] > record.life:
            # Only the node knows its start number. Rows with a later one are forged, and would hide its own.
            self._drop(record.name)
        self._count(record.name, True)
        self._unsettled = True
        self._show(record.name)

    def _drop(self, name: str) -> None:
        self._hide(name)
        self._table.forget(name)
        del self._known[name]
        self._news.pop(name, None)
        for theirs in self._theirs.values():
            theirs.pop(name, None)

    def node_down(self, name: str) -> None:
        self._count(name, False)
        self._lives.pop(name, None)
        self._unsettled = True
        self._show(name)

    def unlinked(self, peer: int) -> None:
        self._theirs.pop(peer, None)

    def compare(self, link: int) -> None:
        self._sends.append(Send(link, TableSummary(sums=[self._keyed_sums.total])))

    def tick(self, now_ns: int) -> None:
        self._forget(now_ns)
        if self._asked is not None and now_ns >= self._asked[1]:
            self._asked = None
            for number in [number for number in self._ask_later if number in self._links.numbered]:
                self.compare(number)
            self._ask_later.clear()
        if now_ns >= self._summary_ns:
            self._summary_ns = now_ns + self._timing.summary_ns
            peers = self._links.peers()
            link = self._links.to(self._rng.choice(peers)) if peers else None
            if link is not None:
                self.compare(link.number)

    def _forget(self, now_ns: int) -> None:
        """Keep rows of the absent only for so long as membership remembers the dead: they may be back, or not."""
        absent = self._known.keys() - self._lives.keys() - {self._table.node}
        self._absent_ns = {name: self._absent_ns.get(name, now_ns) for name in absent}
        for name, since_ns in list(self._absent_ns.items()):
            if now_ns - since_ns >= self._timing.forget_ns:
                self._table.forget(name)
                del self._known[name], self._absent_ns[name]
                self._news.pop(name, None)

    def hear(self, link: int, peer: NodeRecord, message: Replication, now_ns: int) -> None:
        """Raises BadMessage; nothing has changed then."""
        if isinstance(message, TableSummary):
            self._summary(link, message, now_ns)
        elif isinstance(message, TableDigest):
            self._digest(link, peer, message, now_ns)
        else:
            asked = self._asked is not None and self._asked[0] == link
            self._delta(peer, decode_page_untrusted(message.page), asked)
            if asked:
                self._asked = link, now_ns + CATCH_UP_NS

    def finish(self, now_ns: int) -> list[Action]:
        """What is to be done and told because of all that happened."""
        contests = self._succession.noticed(self._changes)
        if self._unsettled:
            self._changes += self._succession.settle(self._lives)
            self._unsettled = self._succession.unsettled
            self._settle_ns = now_ns if self._unsettled else None
        self._changes += self._succession.take_over_settings()
        if self._written != self._succession.written:
            self._written = self._succession.written
            self._refresh([self._table.node])
        if self._news and not self.silent:
            if self._push_ns is None:
                self._push_ns = now_ns + self._timing.push_of(self.size)
            if self._push_ns <= now_ns:
                self._push()
        out, self._sends = self._sends if not self.silent else [], []
        if self._changes:
            out.append(Changed(self._changes))
            self._changes = []
        return out + contests

    # ------------------------------------------------------------------ comparing

    def _ask(self, link: int, digest: TableDigest, now_ns: int) -> None:
        """Have the other side send what is lacking here. One who knows nothing yet asks one peer: each of them would
        send all of it."""
        if self._asked is None and not self._known.keys() - {self._table.node}:
            self._asked = link, now_ns + CATCH_UP_NS
        if self._asked is None or self._asked[0] == link:
            self._sends.append(Send(link, digest))
        else:
            self._ask_later[link] = None

    def _summary(self, link: int, message: TableSummary, now_ns: int) -> None:
        if len(message.sums) != 1:
            buckets = self._keyed_sums.differing(message.sums)
        elif message.sums[0] == self._keyed_sums.total:
            return
        elif self.size <= SMALL:
            buckets = list(range(BUCKETS))
        else:
            self._sends.append(Send(link, TableSummary(sums=list(self._keyed_sums.sums))))
            return
        if buckets:
            self._ask(link, self._versions(buckets, answer=True), now_ns)

    def _versions(self, buckets: list[int], *, answer: bool) -> TableDigest:
        names = [name for bucket in buckets if bucket < BUCKETS for name in self._compared[bucket]]
        return TableDigest(buckets=buckets, versions={name: self._known[name] for name in names}, answer=answer)

    def _digest(self, link: int, peer: NodeRecord, message: TableDigest, now_ns: int) -> None:
        theirs = message.versions
        kept = {name: version for name, version in theirs.items() if self._is_here(name) or name in self._known}
        self._theirs.setdefault(peer.incarnation, {}).update(kept)
        self._outlive(theirs)
        mine = self._versions(message.buckets, answer=False)
        behind = {n: theirs.get(n, _HAS_NOTHING) for n, v in mine.versions.items() if theirs.get(n, _HAS_NOTHING) < v}
        self._sends += [Send(link, TableDelta(page=page.content)) for page in self._pages(behind)]
        lacking = any(self._known.get(n, _HAS_NOTHING) < v for n, v in theirs.items() if self._is_here(n))
        if lacking and message.answer:
            self._ask(link, mine, now_ns)

    def _outlive(self, theirs: Digest) -> None:
        """A peer knows newer rows of this node than the node itself: take a new start number."""
        life, version = theirs.get(self._table.node, _HAS_NOTHING)
        mine = self._known[self._table.node]
        if life == mine[0] and version > mine[1]:
            earlier = Delta(node=self._table.node, incarnation=life + 1, since=0, through=0, floor=0, entries=[])
            self._table.apply([earlier])
            self._refresh([self._table.node])

    # ------------------------------------------------------------------ rows that arrive

    def _delta(self, peer: NodeRecord, deltas: list[Delta], asked: bool) -> None:
        theirs = self._theirs.setdefault(peer.incarnation, {})
        fresh: list[Delta] = []
        for delta in deltas:
            if not self._admits(delta.node) or not self._leads(delta):
                self._table.refused["rows of a node not here" if self._leads(delta) else "implausible life"] += 1
                continue
            reached = (delta.incarnation, delta.through)
            theirs[delta.node] = max(theirs.get(delta.node, _HAS_NOTHING), reached)
            if reached > self._known.get(delta.node, _HAS_NOTHING):
                fresh.append(admit(delta, self._table.refused))
        if not fresh:
            return
        for delta in fresh:
            self._withdraw(delta)
        self._changes += self._table.apply(fresh)
        self._unsettled |= bool(self._table.orphans())
        self._refresh(delta.node for delta in fresh)
        for delta in fresh:
            self._show(delta.node)
            told = asked and delta.node != self._table.node  # everybody else had it before
            if told or (delta.node == peer.name and self.size <= SMALL):
                self._news.pop(delta.node, None)  # or its owner told everybody

    def _admits(self, name: str) -> bool:
        if self._is_here(name) or name in self._known:
            return True
        return len(self._known) < self.size + MAX_STRANGERS

    def _leads(self, delta: Delta) -> bool:
        """Rows may come before word of the life they are of, but not of one that their node could not outlive."""
        return delta.incarnation <= max(PLAUSIBLE_LIFE, self._lives.get(delta.node, 0))

    def _withdraw(self, delta: Delta) -> None:
        """Hide the rows of an earlier life before they are replaced, and those of a node not known to be here."""
        name = delta.node
        new_life = delta.incarnation > self._known.get(name, (delta.incarnation, 0))[0]
        if name != self._table.node and (new_life or name not in self._lives):
            self._hide(name)

    # ------------------------------------------------------------------ what is seen

    def _is_here(self, name: str) -> bool:
        return name in self._lives or name == self._table.node

    def _show(self, name: str) -> None:
        """Show a node's rows while it is here and they carry its current start number."""
        if name == self._table.node:
            return
        life = self._lives.get(name)
        if life is None or self._known.get(name, (life, 0))[0] < life:
            self._hide(name)
        else:
            self._changes += self._table.set_present(name, True)

    def _hide(self, name: str) -> None:
        changes = self._table.set_present(name, False)
        self._unsettled |= bool(changes or self._table.orphans())
        self._changes += changes

    def _count(self, name: str, counts: bool) -> None:
        """Take a node out of the sums before what is known of it changes, and put it in again afterwards.

        Only rows with the node's current start number count; a node without rows makes no difference.
        """
        life, version = self._known.get(name, _HAS_NOTHING)
        if version and self._is_here(name) and life >= self._lives.get(name, life):
            key = key_of(name)
            self._keyed_sums.toggle(key, life * 0xD6E8FEB86659FD93 + version)
            (self._compared[key % BUCKETS].add if counts else self._compared[key % BUCKETS].discard)(name)

    def _refresh(self, names: Iterable[str]) -> None:
        """The table learnt of these nodes' rows: remember how far it is, and that there is news."""
        digest = self._table.digest()
        for name in names:
            old, new = self._known.get(name, _HAS_NOTHING), digest.get(name, _HAS_NOTHING)
            if new in (old, _HAS_NOTHING):
                continue
            self._count(name, False)
            self._known[name] = new
            self._count(name, True)
            since = old[1] if old[0] == new[0] else 0
            self._news[name] = min(self._news.get(name, since), since)

    # ------------------------------------------------------------------ pushing

    def _push(self) -> None:
        self._push_ns = None
        pages = self._pages({n: (self._known[n][0], since) for n, since in self._news.items() if self._is_here(n)})
        self._news.clear()
        peers = self._links.peers() if pages else []
        fanout = self._timing.fanout_of(self.size)
        for peer in peers if len(peers) <= fanout else self._rng.sample(peers, fanout):
            link = self._links.to(peer)
            theirs = self._theirs.setdefault(peer, {})
            for page in pages:
                if link is not None and any(theirs.get(n, _HAS_NOTHING) < v for n, v in page.covers.items()):
                    theirs.update(page.covers)
                    self._sends.append(Send(link.number, TableDelta(page=page.content)))

    def _pages(self, wanted: Digest) -> list[Page]:
        """What one lacks who has `wanted` of these nodes, and all of the others."""
        return cut(self._table.delta(dict.fromkeys(self._known, _HAS_ALL) | wanted)) if wanted else []
