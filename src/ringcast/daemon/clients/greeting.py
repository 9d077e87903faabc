"""A client's first words: who it is, as the kernel says, and whether it may come in.

Invariant: nobody joins who speaks another protocol, or for whom there is no rule.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ringcast.control.answers import Welcome
from ringcast.control.descriptor import Descriptor
from ringcast.control.refusal import refuse
from ringcast.control.requests import Hello, Request
from ringcast.control.wire import PROTOCOL_VERSION
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.access.limits import Limits
from ringcast.daemon.clients.connection import Connection
from ringcast.daemon.clients.local import Local
from ringcast.daemon.clients.processes import Processes
from ringcast.daemon.machine import Peer, program_of
from ringcast.errors import BadMessage, NameTaken, NotAllowed, RingcastError
from ringcast.security.rules import Who

logger = logging.getLogger("ringcast.daemon")


HELLO_S = 10.0
"""How long a connection may say nothing before its first word."""


class Greeting:
    def __init__(self, local: Local, processes: Processes, audit: Audit, limits: Limits) -> None:
        self.name_taken: NameTaken | None = None
        """While another daemon has this one's name, nobody is served."""
        self._local = local
        self._processes = processes
        self._audit = audit
        self._limits = limits

    def expect(self, connection: Connection, peer: Peer, drop: Callable[[Connection, str], None]) -> None:
        """Have a connection dropped that does not say hello in time."""

        def silent() -> None:
            self._audit.note("client", f"user {peer.user}", "connect", "", "it says nothing", peer.pid)
            drop(connection, "silent")

        connection.expect_hello(HELLO_S, silent)

    def greet(self, connection: Connection, peer: Peer, hello: Request, fds: list[Descriptor]) -> None:
        """Raises BadMessage."""
        if not isinstance(hello, Hello):
            raise BadMessage(f"{type(hello).__name__} before hello")
        if hello.version != PROTOCOL_VERSION:
            reason = (
                f"this daemon speaks control protocol {PROTOCOL_VERSION} and the client {hello.version}; use the same "
                "version of ringcast in both, and start the daemon again"
            )
            connection.push(refuse(hello.id, BadMessage(reason)))
            connection.end()
            return
        refused = self.name_taken or self._limits.too_many.get(connection.number)
        if refused is not None:
            connection.push(refuse(hello.id, refused))
            connection.end()
            return
        who = Who(peer.uid, peer.gids, program_of(peer.pid, self._processes.pidfd(peer.pid)), peer.user)
        try:
            self._local.rights.check_known(who)
        except NotAllowed as exc:
            self._audit.client(who, peer.pid, exc)
            connection.push(refuse(hello.id, exc))
            connection.end()
            return
        try:
            self._local.join(connection.number, peer.pid, peer.user, hello, fds, who)
        except BadMessage:
            raise
        except RingcastError as exc:
            connection.push(refuse(hello.id, exc))
            return
        connection.greet()
        logger.info("client %d joined: process %d of %s, %s", connection.number, peer.pid, peer.user, hello.program)
        connection.push(Welcome(id=hello.id, node=self._local.table.node, daemon_pid=os.getpid()))
