"""The links of one node: which stand, with whom, and which addresses may be dialled when. Pure.

Invariants: an address is dialled once at a time and, after failures, ever more seldom; an address at which this very
daemon answered is never dialled again; of several links with one peer a living one is used, and exactly one end closes
a superfluous one. Does not know why anybody is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ringcast.control.peering import NodeRecord
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.model.addresses import is_address, same_host, split

MAX_REFUSALS = 256
MAX_ADDRESSES = 4096
"""How many failures are remembered; the oldest are forgotten."""


class Link:
    __slots__ = ("address", "age_ns", "heard_ns", "number", "peer", "up_ns", "used_ns")

    def __init__(self, number: int, address: str | None, now_ns: int, age_ns: int) -> None:
        self.number = number
        self.address = address
        self.peer: int | None = None
        self.up_ns = self.heard_ns = self.used_ns = now_ns
        self.age_ns = age_ns
        """What this daemon said its age was."""

    @property
    def dialled(self) -> bool:
        return self.address is not None


class Links:
    def __init__(self, me: int, timing: Timing, rng: Random) -> None:
        self.numbered: dict[int, Link] = {}
        self.refusals: dict[str, str] = {}
        """{address: why this daemon and the one there have no link}"""
        self._me = me
        self._timing = timing
        self._rng = rng
        self._of: dict[int, list[Link]] = {}
        self._dialling: set[str] = set()
        self._failures: dict[str, tuple[int, int]] = {}  # address: how many, and when to try again
        self._own: set[str] = set()
        self._answered: dict[str, int] = {}  # address: who answered there, the latest at the end
        self._shunned: set[str] = set()
        self._unknown: dict[int, Link] = {}

    # ------------------------------------------------------------------ links

    def add(self, link: Link) -> None:
        self.numbered[link.number] = link
        self._unknown[link.number] = link
        if link.address is not None:
            self._dialling.discard(link.address)

    def identify(self, link: Link, peer: int) -> bool:
        """The link's other end said who it is; whether this is the first link with it."""
        link.peer = peer
        self._unknown.pop(link.number, None)
        if link.address is not None:
            self._failures.pop(link.address, None)
            self._answered.pop(link.address, None)
            self._answered[link.address] = peer
            if len(self._answered) > MAX_ADDRESSES:
                del self._answered[next(iter(self._answered))]
            self._shunned.discard(link.address)
        self._of.setdefault(peer, []).append(link)
        return len(self._of[peer]) == 1

    def remove(self, number: int) -> Link | None:
        link = self.numbered.pop(number, None)
        if link is None:
            return None
        self._unknown.pop(number, None)
        if link.peer is not None:
            links = self._of[link.peer]
            links.remove(link)
            if not links:
                del self._of[link.peer]
        return link

    def to(self, peer: int) -> Link | None:
        """The link with the peer; of several the one by which it was heard last, since another may be dead."""
        links = self._of.get(peer)
        if not links:
            return None
        return links[0] if len(links) == 1 else max(links, key=lambda link: link.heard_ns)

    def proves(self, link: Link) -> bool:
        """Whether the peer is who it says: this end called it, and no other that it called says the same."""
        of_peer = self._of.get(link.peer, []) if link.peer is not None else []
        return next((other for other in of_peer if other.dialled), None) is link

    def peers(self) -> list[int]:
        return list(self._of)

    def superfluous(self, peer: int) -> Link | None:
        """A link with the peer that this end is to close because there is another."""
        links = self._of.get(peer, [])
        if len(links) < 2:
            return None
        mine = [link for link in links if link.dialled]
        if len(mine) == len(links) or (mine and self._me > peer):
            return mine[-1]
        return None

    def outlived(self, before_ns: int) -> list[Link]:
        """Links not heard of since that moment, with peers that are heard by others."""
        several = [(peer, links) for peer, links in self._of.items() if len(links) > 1]
        return [
            link for peer, links in several for link in links if link.heard_ns < before_ns and link is not self.to(peer)
        ]

    def silent(self, before_ns: int) -> list[Link]:
        """Links up since before that moment whose other end has not said who it is."""
        return [link for link in self._unknown.values() if link.up_ns < before_ns]

    def idle(self, needed: set[int], before_ns: int) -> Iterator[Link]:
        """Links this end made, with peers it does not need, not used since that moment."""
        for link in self.numbered.values():
            if link.dialled and link.peer is not None and link.peer not in needed and link.used_ns < before_ns:
                yield link

    def surplus(self, needed: set[int], now_ns: int) -> list[tuple[Link, str, bool]]:
        """Links to close now, why, and whether gently; `needed` are the peers that this end wants links with."""
        old_ns = now_ns - self._timing.hello_ns
        return [
            *((link, "no hello", False) for link in self.silent(old_ns)),
            *((link, "the peer uses another link", False) for link in self.outlived(old_ns)),
            *((link, "no longer needed", True) for link in self.idle(needed, now_ns - self._timing.idle_ns)),
        ]

    def note_refusal(self, link: Link, reason: str) -> None:
        if link.address is not None and len(self.refusals) < MAX_REFUSALS:
            # What the other side says goes to logs and terminals.
            self.refusals[link.address] = "".join(char if char.isprintable() else "?" for char in reason)

    def proven_host(self, link: Link, record: NodeRecord, remote: str) -> str | None:
        """An address of the daemon that `record` describes, at the other end of the link, that is surely its own: the
        one it calls from (`remote`), or one at which it answered when it was called. The one in use comes first."""
        hosts = {address: split(address)[0] for address in record.control if is_address(address)}
        for address, host in hosts.items():
            if address == link.address or same_host(host, remote):
                return host
        return next((host for at, host in hosts.items() if self.who_answered(at) == record.incarnation), None)

    # ------------------------------------------------------------------ addresses

    def choose(self, addresses: tuple[str, ...], now_ns: int) -> tuple[str | None, int]:
        """The address to dial now, marked as being dialled; or None, and when to ask again."""
        best: str | None = None
        fewest, soonest = 0, now_ns + self._timing.max_redial_ns
        for address in addresses:
            if address in self._dialling:
                return None, now_ns + self._timing.max_redial_ns  # its outcome will be told
            if address in self._own:
                continue
            count, again_ns = self._failures.get(address, (0, now_ns))
            if again_ns > now_ns:
                soonest = min(soonest, again_ns)
            elif best is None or count < fewest:
                best, fewest = address, count
        if best is not None:
            self._dialling.add(best)
        return best, soonest

    def failed(self, address: str, now_ns: int) -> None:
        self._dialling.discard(address)
        count = self._failures.pop(address, (0, 0))[0] + 1
        wait_ns = min(self._timing.redial_ns * 2 ** min(count - 1, 16), self._timing.max_redial_ns)
        # Spread by half, so that those who lost a peer together do not return together.
        self._failures[address] = (count, now_ns + int(wait_ns * (0.5 + self._rng.random() / 2)))
        if len(self._failures) > MAX_ADDRESSES:
            oldest = next(iter(self._failures))
            del self._failures[oldest]
            self._shunned.discard(oldest)

    def shun(self, address: str, until_ns: int) -> None:
        """Who answers there is not of this mesh."""
        self._failures[address] = (self._failures.pop(address, (1, 0))[0], until_ns)
        self._shunned.add(address)

    def forgive(self, address: str) -> None:
        """Somebody of this mesh says that it is there now."""
        if address in self._shunned:
            self._failures.pop(address, None)
            self._shunned.discard(address)

    def who_answered(self, address: str) -> int | None:
        """The daemon that was called there last and said who it is."""
        return self._answered.get(address)

    def is_own(self, address: str) -> None:
        """This daemon answered itself there."""
        if len(self._own) < MAX_ADDRESSES:
            self._own.add(address)
        self._failures.pop(address, None)
