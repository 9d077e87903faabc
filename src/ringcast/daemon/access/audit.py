"""What was refused, and to whom: on the tag `@ringcast/<node>/audit` and, as lines of JSON, in a file.

Invariants: every refusal is counted; of many alike in a minute a few are written down, and then how many more there
were; nothing of a message's contents is in it; a full disk costs the record, never the daemon.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ringcast import _core
from ringcast.control.requests import ReportRefusal
from ringcast.control.status import Refusal
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.complaints import Complaints, printable
from ringcast.daemon.observe.own_publisher import OwnPublisher
from ringcast.daemon.observe.rate_limit import RateLimit
from ringcast.daemon.rings.registrations import Client
from ringcast.daemon.table.system_tags import AUDIT_ATTRIBUTES, audit_tag
from ringcast.errors import NotAllowed, RingcastError
from ringcast.security.rules import ACTIONS, Who

logger = logging.getLogger("ringcast.audit")

LINES_PER_MINUTE = 20
"""Of one kind about one asker."""
MOST_BYTES = 8 * 1024 * 1024
"""Of the file; then it becomes FILE.1, and another begins."""
MOST_CHARS = 300
REPORTED = (*ACTIONS, "enter")
"""What programs report is counted by these; whatever else they say, under one name."""


class Audit:
    """`path` '' keeps no file. `changed` is called when the tag was made."""

    def __init__(
        self, local: Local, path: str, deliver: Callable[[list[Send]], None], changed: Callable[[], None]
    ) -> None:
        self.counts: Counter[str] = Counter()
        """By action."""
        self.path = path
        self._node = local.table.node
        self._loop = asyncio.get_running_loop()
        self._limit = RateLimit(per_window=LINES_PER_MINUTE)
        self._complaints = Complaints(logger)
        self._publisher = OwnPublisher(local, audit_tag(self._node), AUDIT_ATTRIBUTES, deliver, changed)
        self._waiting: list[Refusal] = []
        self._alarm = Alarm(self._tick)
        self._closed = False

    def client(self, who: Who, pid: int, error: NotAllowed) -> None:
        self.note("client", str(who), error.action, error.what, "no rule allows it", pid)

    def reported(self, client: Client, said: ReportRefusal) -> None:
        """A program refused something to somebody whom it serves. Its word is recorded as its word: with its user and
        process, and under one limit, whomever it names."""
        who = f"{said.who}, says the program {client.program!r} of user {client.user}"
        action = said.action if said.action in REPORTED else "other"
        self.note("web", who, action, said.what, said.reason, client.pid, said.count, ("web", client.user, action))

    def note(
        self, kind: str, who: str, action: str, what: str, reason: str, pid: int = 0, count: int = 1,
        alike: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Something was refused, so many times. Whatever comes from others is cut and made printable here. Those that
        are `alike` (by default in kind, asker and action) share a limit."""
        self.counts[action] += count
        record = Refusal(
            at_ns=_core.utc_ns(), node=self._node, kind=kind, who=_short(who), pid=pid, action=_short(action),  # type: ignore[arg-type]
            what=_short(what), reason=_short(reason), left_out=count - 1,
        )  # fmt: skip
        now_ns = int(self._loop.time() * 1e9)
        self._sum_up(now_ns)
        if self._limit.admits(alike or (kind, who, action), now_ns, record, count):
            self._write(record)
        if (due_ns := self._limit.due_ns()) is not None:
            self._alarm.within(max(0, due_ns - now_ns) / 1e9 + 1e-3)

    @property
    def left_out(self) -> int:
        return self._limit.suppressed

    def close(self) -> None:
        """What was left out until now is written down."""
        self._closed = True
        self._alarm.close()
        for count, record in self._limit.take_sums(2**63):
            self._write_file(replace(record, left_out=count))
        self._complaints.close()
        self._publisher.close()

    def _tick(self) -> None:
        self._sum_up(int(self._loop.time() * 1e9))

    def _sum_up(self, now_ns: int) -> None:
        for count, record in self._limit.take_sums(now_ns):
            self._write(replace(record, left_out=count))

    def _write(self, record: Refusal) -> None:
        if self._closed:
            return
        self._write_file(record)
        # Later: making the tag is a request of its own, and this may be in the middle of another.
        if not self._waiting:
            self._loop.call_soon(self._publish)
        self._waiting.append(record)

    def _publish(self) -> None:
        records, self._waiting = self._waiting, []
        for record in records if not self._closed else ():
            try:
                self._publisher.send(msgspec.json.encode(record))
            except RingcastError as exc:
                self._complaints.warning("tag", "a refusal was not published: %s", exc)

    def _write_file(self, record: Refusal) -> None:
        if not self.path:
            return
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(file, msgspec.json.encode(record) + b"\n")
                full = os.fstat(file).st_size > MOST_BYTES
            finally:
                os.close(file)
            if full:
                os.replace(self.path, f"{self.path}.1")
        except OSError as exc:
            self._complaints.warning("file", "a refusal was not written to %s: %s", self.path, exc.strerror)


def _short(text: str) -> str:
    return printable(text)[:MOST_CHARS]
