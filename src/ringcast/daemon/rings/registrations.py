"""What clients of this node hold: rings that they publish on, subscriptions, mailboxes. No rules.

The rules are in `ringcast.daemon.clients`.
"""

from __future__ import annotations

import weakref
from typing import Literal, NamedTuple

from ringcast.control.descriptor import Descriptor
from ringcast.control.status import SubscriberStatus
from ringcast.daemon.rings.demand import Demand, SubscribeOptions, spec_of
from ringcast.daemon.rings.fanout import Mailbox
from ringcast.daemon.rings.ring import Counters, DerivedRing, MirrorRing, Ring
from ringcast.model.identity import SubscriberInfo
from ringcast.scaling.fidelity import Fidelity
from ringcast.security.rules import Who

OWN_CLIENT = 0
"""The daemon as a client of its own; connections are numbered from 1."""


class Subscription:
    """A subscription or, with role history, a reader that does not count as a subscriber. `number` is its client's
    choice."""

    def __init__(
        self,
        client: Client,
        number: int,
        info: SubscriberInfo,
        role: Literal["subscriber", "history"],
        counter_index: int,
        options: SubscribeOptions = SubscribeOptions(),
    ) -> None:
        self.options = options
        self.deadline_s = 0.0
        self.since = 0
        self.fidelity = Fidelity(options.rate_hz or None, options.size)
        """What its client was told last, of one with a range."""
        self.client = client
        self.number = number
        self.info = info
        self.role = role
        self.mailbox: Mailbox | None = None
        self.pace_told: dict[int, int] = {}
        """The factor last told, by ring."""
        self.tag_now = self.tag_next = ""
        """Of one that wants the best stream only: the tag that it receives, and a better one that is being opened."""
        self.begun: set[int] = set()
        """Incarnations of publishers that it has had a ring of since it changed over."""
        self._counter_index = counter_index

    @property
    def pattern(self) -> str:
        return self.info.pattern

    @property
    def counts(self) -> bool:
        return self.role == "subscriber"

    @property
    def key(self) -> tuple[int, int]:
        return self.client.number, self.number

    @property
    def reliable(self) -> bool:
        return self.counts and self.options.reliable

    @property
    def rate_hz(self) -> float:
        """The rate that the reader itself must keep to, where no stage does."""
        return self.options.rate_hz if self.counts else 0.0

    def takes(self, tag: str) -> bool:
        """Whether rings of a tag that it matches are for it."""
        return not self.options.only_best or tag == self.tag_now

    def opens(self, tag: str) -> bool:
        """Whether streams of a tag that it matches are wanted for it."""
        return self.takes(tag) or tag == self.tag_next

    def reads(self, ring: Ring) -> bool:
        """Whether it was shown the ring, and nothing that continues it."""
        return self.key in ring.readers

    def accepts(self, ring: Ring, demand: Demand) -> bool:
        """Own publishers' rings are for those who scale for themselves, a mirror and what a stage makes for those who
        asked for it. `demand` is how the subscription wants the ring's tag."""
        if isinstance(ring, DerivedRing):
            return self.counts and spec_of(ring.row, demand, self.info.node) == ring.spec
        if isinstance(ring, MirrorRing):
            return self.counts and ring.demand == demand
        return demand.size is None or spec_of(ring.row, demand, self.info.node) in ring.plain_for

    def paces(self, ring: Ring) -> bool:
        """Whether the reader itself is to leave messages out, for its rate."""
        return (
            self.rate_hz > 0
            and not isinstance(ring, DerivedRing)
            and ring.every == 1
            and not (isinstance(ring, MirrorRing) and ring.demand.rate_hz)
        )

    def status(self) -> SubscriberStatus:
        counters: dict[str, int] = {}
        latency: list[int] = []
        if self.client.counters is not None and self._counter_index >= 0:
            try:
                counters = self.client.counters.counters(self._counter_index)
                latency = self.client.counters.latency_histogram(self._counter_index)
            except (IndexError, TypeError, ValueError):  # the index comes from the client and may be wrong
                pass
        return SubscriberStatus(
            info=self.info, counters=counters, latency=latency, wanted=self.options.wanted, deadline_s=self.deadline_s
        )


class Expected(NamedTuple):
    """A subscription that is about to be: streams are opened for it before it is granted."""

    pattern: str
    options: SubscribeOptions
    client: Client | None
    number: int


class Client:
    """A session, as SO_PEERCRED and its greeting describe it, and what it holds."""

    def __init__(
        self, number: int, pid: int, user: str, program: str, counters: Counters | None, who: Who | None = None
    ) -> None:
        self.number = number
        self.who = who
        """None for the daemon itself."""
        self.pid = pid
        self.user = user
        self.program = program
        self.counters = counters
        self.rings: dict[int, Ring] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.pulls: dict[int, str] = {}
        """Rows of histories that declared how they pull, by the client's numbers."""
        self.receives = who is not None
        """Whether it may be asked to receive streams itself."""
        self.trusted = False
        """Whether its user is the daemon's, or root: what it received itself, others here may read."""
        self._mailboxes: weakref.WeakValueDictionary[tuple[int, int], Mailbox] = weakref.WeakValueDictionary()

    def mailbox(self, descriptor: Descriptor, number: int) -> Mailbox:
        """The mailbox behind the descriptor: the one known already, so that publishers ring it once, or a new one."""
        file = descriptor.same_file()
        known = self._mailboxes.get(file)
        if known is None:
            known = self._mailboxes[file] = Mailbox(number, descriptor)
        return known
