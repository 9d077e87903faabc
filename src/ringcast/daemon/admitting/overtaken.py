"""Two nodes let somebody in at the same time, neither knowing of the other's: the later of the two goes.

Declarations have one order in the whole mesh (`declaration_key`), so both nodes answer alike which is the later: the
node that let it in judges it again when it hears of the earlier one, and takes its right away with the reasons.
Invariant: what goes would have been refused had its node known; what would have been refused without the other one too
stays, because nothing about it changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ringcast.control.notices import RightTaken
from ringcast.control.refusal import refuse
from ringcast.daemon.admitting.admitting import MOST_STREAMS
from ringcast.daemon.clients.local import Local
from ringcast.daemon.coalesced import Coalesced
from ringcast.daemon.effects import Send
from ringcast.daemon.table.rows import Change, ChangeKind, Declaration, PublisherRow, declaration_key, is_declaration
from ringcast.errors import AdmissionRefused

logger = logging.getLogger("ringcast.daemon")


class Overtaken:
    """`settled` says whether all is known of other nodes that was asked for; until then nobody is judged again."""

    def __init__(
        self, local: Local, deliver: Callable[[list[Send]], None], changed: Callable[[], None],
        settled: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._local = local
        self._deliver = deliver
        self._changed = changed
        self._settled = settled
        self._heard: dict[tuple[str, str], Declaration] = {}
        self._judging = Coalesced(self.judge)

    def changed(self, changes: Iterable[Change]) -> None:
        """Rows of other nodes are other than before."""
        for kind, row in changes:
            if kind is ChangeKind.REMOVED:
                self._heard.pop((row.owner, row.key), None)
            elif kind is ChangeKind.ADDED and is_declaration(row):
                self._heard[row.owner, row.key] = row
        if self._heard:
            self.soon()

    def soon(self) -> None:
        self._judging.soon()

    def close(self) -> None:
        self._judging.close()

    def judge(self) -> None:
        """Judge again what was let in here before the others were heard of."""
        if not self._heard or not self._settled():
            return
        heard, self._heard = list(self._heard.values()), {}
        table = self._local.table
        if sum(isinstance(row, PublisherRow) for row in table.declarations()) > MOST_STREAMS:
            logger.warning("too many declared streams to judge again what was let in at the same time on two nodes")
            return
        for row in [row for row in table.declarations() if row.owner == table.node]:
            before = [one for one in heard if declaration_key(one) < declaration_key(row)]
            why = self._local.admitting.overtaken(row, before) if before else None
            if why is not None:
                self._take(row, why)

    def _take(self, row: Declaration, why: AdmissionRefused) -> None:
        logger.warning("%s", why)
        local, out = self._local, list[Send]()
        for client in list(local.clients.values()):
            for ring in [ring for ring in client.rings.values() if ring.row.key == row.key]:
                local.publishers.retire(ring, linger=False, end=ring.next_seq)
                out.append(Send(client.number, RightTaken(why=refuse(0, why), publisher=ring.number)))
            for one in [one for one in client.subscriptions.values() if one.info is row.info]:
                local.subscribers.drop(one)
                out.append(Send(client.number, RightTaken(why=refuse(0, why), subscription=one.number)))
            for buffer in [buffer for buffer, key in client.pulls.items() if key == row.key]:
                local.end_pull(client.number, buffer)  # its history goes on, without a promise
        self._deliver([*local.changed([]), *out])
        self._changed()
