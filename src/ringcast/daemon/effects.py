"""What a request led to, collected while it is decided and handed over when it is done.

Invariants: publishers learn of mailboxes before anybody is answered, so a message sent after an answer rings them; a
publisher is told a subscriber count at most once per request, and only when it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ringcast.control.answers import Answer
from ringcast.control.descriptor import Openable
from ringcast.control.notices import Notice, SubscriberCount
from ringcast.daemon.rings.fanout import FanOut, Flushed
from ringcast.daemon.rings.inventory import Rings
from ringcast.daemon.table.rows import Change, SubscriberRow
from ringcast.daemon.table.table import TagTable


class Send(NamedTuple):
    """What the shell is to send to a client."""

    client: int
    message: Answer | Notice
    fds: tuple[Openable, ...] = ()


class Effects:
    """Of one request at a time."""

    def __init__(self, table: TagTable, rings: Rings) -> None:
        self._table = table
        self._rings = rings
        self._out: list[Send] = []
        self._recount: set[str] = set()
        self._touched: dict[FanOut, None] = {}
        self.changes: list[Change] = []
        """What this node wrote into the table, for the others."""
        self.stalled: dict[FanOut, Flushed] = {}
        """Fan-outs with announcements left over, and what they wait for."""

    def send(self, client: int, message: Answer | Notice, fds: tuple[Openable, ...] = ()) -> None:
        self._out.append(Send(client, message, fds))

    def note(self, changes: Iterable[Change]) -> None:
        """This node changed the table."""
        changes = list(changes)
        self.changes += changes
        self.recount(changes)

    def recount(self, changes: Iterable[Change]) -> None:
        """The table changed: publishers may have gained or lost subscribers."""
        for change in changes:
            if isinstance(change.row, SubscriberRow):
                self._recount.update(ring.tag for ring in self._rings.matching(change.row.info.pattern))

    def announce(self, fanout: FanOut) -> None:
        """The fan-out has something to tell its publisher."""
        self._touched[fanout] = None

    def forget(self, fanout: FanOut) -> None:
        """The fan-out is about to be closed."""
        self._touched.pop(fanout, None)
        self.stalled.pop(fanout, None)

    def flush(self, fanout: FanOut) -> None:
        outcome = fanout.flush()
        if outcome is not Flushed.ALL:
            self.stalled[fanout] = outcome

    def finish(self) -> list[Send]:
        for fanout in self._touched:
            self.flush(fanout)
        self._touched.clear()
        for tag in sorted(self._recount):
            count = len(self._table.subscribers(tag))
            for ring in self._rings.matching(tag):
                if ring.owner is not None and ring.announced != count:
                    ring.announced = count
                    self.send(ring.owner, SubscriberCount(publisher=ring.number, count=count))
        self._recount.clear()
        out, self._out = self._out, []
        return out
