"""The daemon's shell: the listening socket, the clients' sockets and their processes, in one asyncio loop.

It owns sockets, time and the log; `ringcast.daemon.requests` decides what a request means. Invariants: nothing here
blocks or polls, so an idle daemon uses no CPU; whatever one client does, the others do not notice; what a client held
is withdrawn as soon as its connection or its process ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringcast import _core
from ringcast.control import link
from ringcast.control.answers import Done, Status
from ringcast.control.descriptor import own
from ringcast.control.refusal import failed, refuse
from ringcast.control.requests import Bye, GetSettings, GetStatus, Request
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.access.limits import Limits
from ringcast.daemon.access.rights import Rights
from ringcast.daemon.access.taking import Remade, Taking
from ringcast.daemon.background import Background
from ringcast.daemon.clients.claim import Claim
from ringcast.daemon.clients.connection import Connection
from ringcast.daemon.clients.greeting import Greeting
from ringcast.daemon.clients.listener import Listener, no_descriptors
from ringcast.daemon.clients.local import Local
from ringcast.daemon.clients.processes import Processes
from ringcast.daemon.clients.unused_tags import UnusedTags
from ringcast.daemon.effects import Send
from ringcast.daemon.fidelity.best_streams import BestStreams
from ringcast.daemon.fidelity.ranges import Ranges
from ringcast.daemon.fidelity.rates import Rates
from ringcast.daemon.machine import Peer, package_version, peer_of
from ringcast.daemon.mesh.core.events import NameCleared, NameConflict
from ringcast.daemon.observe import listing
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.observe.watchers import Watchers
from ringcast.daemon.operate import in_force
from ringcast.daemon.operate.config_file import audit_path, identity_folder, is_exposed, rules_of
from ringcast.daemon.operate.configuration import settings_for
from ringcast.daemon.operate.declared import Declared
from ringcast.daemon.operate.in_force import Settings
from ringcast.daemon.requests import Requests
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.fanout import FanOut
from ringcast.daemon.rings.flushing import Flushing
from ringcast.daemon.rings.registrations import OWN_CLIENT
from ringcast.daemon.rings.ring import Core
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.stages.views import Views
from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, NameTaken

if TYPE_CHECKING:
    from ringcast.daemon.network import Network

logger = logging.getLogger("ringcast.daemon")

PACKETS_PER_TURN = 16


class Server:
    """Serve the clients that connect to `claim`'s socket until `stop`, or until idle for `idle_linger_s` if given."""

    def __init__(self, claim: Claim, core: Core, settings: Settings, *, idle_linger_s: float | None) -> None:
        self.settings = settings
        """What is in force."""
        self.socket_path = claim.socket_path
        self._node = node = settings.name
        self._until_idle = idle_linger_s is not None
        budget = Budget(
            settings.values["limits.memory"], max_lingering=settings.values["limits.lingering_rings"],
            max_lingering_per_tag=settings.values["limits.lingering_rings_per_tag"],
        )  # fmt: skip
        self.local = Local(
            TagTable(node, _core.utc_ns()), budget, core, settings_of=lambda t: settings_for(self.settings.rules, t),
            on_leaving=self._leaving, on_taken=self._taken, on_rate=lambda: self._rates.later(),
            rights=Rights(node, rules_of(settings)),
        )  # fmt: skip
        self.audit = Audit(self.local, audit_path(settings), self._deliver, lambda: self._follow())
        self._declared = Declared(self.local)
        self.bad_messages = 0
        self.slow_clients = 0
        self.mistakes = 0
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._stopped = asyncio.Event()
        self._numbers = itertools.count(1)
        self._connections: dict[int, Connection] = {}
        self._peers: dict[int, Peer] = {}
        self._sessions: Counter[int] = Counter()  # how many connections a process has
        self._processes = Processes(self._loop, self._process_died)
        self._background = Background()
        self._flushing = Flushing(self._retry)
        self._unused_tags = UnusedTags(settings.values["limits.tag_lease_s"], self._unused, self._expire)
        self.limits = Limits(self.local, core, self.audit, settings.values, os.geteuid())
        self._greeting = Greeting(self.local, self._processes, self.audit, self.limits)
        self._watchers = Watchers(Liveliness(node))
        self.network: Network | None = None
        if settings.values["listen"]:
            # Not above: it is half of what a daemon loads, and a daemon that programs start for themselves has none.
            from ringcast.daemon.network import Network, NetworkSettings

            self.network = Network(
                self.local,
                NetworkSettings.of(settings.values, str(identity_folder(settings) or "")),
                self._deliver,
                self._watchers,
                self._named,
                self._background,
                self.audit,
            )
            self._stages = self.network.stages
            self.network.limit(settings.values)
        else:
            self._stages = Stages(self.local, self._deliver, self._background)
        self._views = Views(self.local.table, self.socket_path, self._background)
        self._stages.on_follow = self._followed
        self._requests = Requests(
            self.local, self.network, self._stages, self._watchers, self._deliver, self._background,
            on_bad=self._refuse, on_mistake=self._failed, on_done=self._follow, audit=self.audit, limits=self.limits,
        )  # fmt: skip
        outgoing = self.network.outgoing if self.network is not None else None
        self._rates = Rates(self.local, self._stages, outgoing, self._deliver)
        self._ranges = Ranges(self.local, self._deliver, self._follow)
        self._best_streams = BestStreams(self.local, self._deliver, self._requests.settle)
        remade: list[Remade] = [self._stages] if self.network is None else [self._stages, self.network.incoming]
        buffers = self.network.buffers if self.network is not None else None
        self._taking = Taking(self.local, remade, buffers, self._watchers, self.audit, self._deliver)
        self._claim = claim
        claim.open_to_others(self.local.rights.rules.shared)
        self._listener = Listener(
            claim, self._loop, on_enter=self._enter, is_empty=lambda: not self._connections, on_idle=self.stop,
            idle_linger_s=idle_linger_s,
        )  # fmt: skip

    async def run(self, ready: Callable[[], None] | None = None) -> None:
        """`ready` is called once clients may connect. Raises OSError when the network cannot be listened on."""
        try:
            if self.network is not None:
                await self.network.start()
            self._declare()
            self._listener.open()
            self._unused_tags.look_later()
            if ready is not None:
                ready()
            await self._stopped.wait()
        finally:
            await self._views.close()
            self._background.close()
            await self._stages.close()
            self._requests.close()
            if self.network is not None:
                await self.network.close()
            self._close()

    def stop(self) -> None:
        self._stopped.set()

    def take_over(self, settings: Settings) -> None:
        """Put other settings in force, as far as that can be done while running; the caller says what cannot."""
        values = settings.values
        self.settings = settings
        self.limits.values = values
        self.local.rights.rules = rules_of(settings)
        self._claim.open_to_others(self.local.rights.rules.shared)
        self._taking.enforce()
        self._deliver(
            self.local.limit(
                values["limits.memory"], values["limits.lingering_rings"], values["limits.lingering_rings_per_tag"]
            )
        )
        if self.network is not None:
            self.network.enforce()
            self.network.mesh.seek(values["peers"])
            self.network.mesh.reload_identity()
            self.network.limit(values)
        self._declare()

    def _declare(self) -> None:
        self._deliver(self._declared.apply(self.settings.tags, self.settings.rules))
        self._follow()

    def _enter(self, sock: socket.socket) -> None:
        connection = Connection(next(self._numbers), sock, self._loop, self._read, self._broken)
        peer = peer_of(sock)
        try:
            if not self.limits.enter(connection.number, peer):
                connection.close()
                return
            self._processes.watch(sock, peer.pid)
        except OSError as exc:  # or it is dead already
            self.limits.leave(connection.number, peer)
            if not isinstance(exc, ProcessLookupError):
                connection.push(refuse(0, no_descriptors(exc)))
            connection.close()
            return
        self._peers[connection.number] = peer
        self._sessions[peer.pid] += 1
        self._connections[connection.number] = connection
        self._greeting.expect(connection, peer, self._broken)

    # ------------------------------------------------------------------ requests

    def _read(self, connection: Connection) -> None:
        for _ in range(PACKETS_PER_TURN):
            if not connection.reading:
                return
            if rest_s := self.limits.rest_s(connection.number):
                connection.rest(rest_s)
                return
            received = None
            try:
                received = self._receive(connection)
                if received is None:
                    return
                self._handle(connection, received)
            except BadMessage as exc:
                self.bad_messages += 1
                if self.bad_messages.bit_count() == 1:  # 1st, 2nd, 4th, 8th...: a flood must not fill the disk
                    pid = self._peers[connection.number].pid
                    logger.warning("process %d sent: %s (%d in all)", pid, exc, self.bad_messages)
                connection.push(refuse(0, exc))
                self._broken(connection, "bad message")
            except Exception:
                self._failed(connection, received.message if received is not None else None)

    def _failed(self, connection: Connection, request: Request | None) -> None:
        """A mistake of ours: the client that met it is told and disconnected; by attaching again it drops what may be
        half done. Others do not notice. Called while the exception is handled."""
        self.mistakes += 1
        logger.exception("a request failed by a mistake of the daemon: %.200r", request)
        if request is not None:
            connection.push(failed(request.id, type(request).__name__))
        self._broken(connection, "mistake")

    def _refuse(self, connection: Connection, exc: BadMessage) -> None:
        self.bad_messages += 1
        logger.warning("process %d: %s", self._peers[connection.number].pid, exc)
        connection.push(refuse(0, exc))
        self._broken(connection, "bad message")

    def _receive(self, connection: Connection) -> link.Received[Request] | None:
        try:
            received = link.receive_request(connection.socket)
        except BlockingIOError:
            return None
        except OSError:
            received = None
        if received is None:
            self._broken(connection, "gone")
        return received

    def _handle(self, connection: Connection, received: link.Received[Request]) -> None:
        request, fds = received.message, own(received.fds)
        if received.limit is not None:
            connection.push(refuse(request.id, received.limit))
        elif not connection.greeted:
            self._greeting.greet(connection, self._peers[connection.number], request, fds)
        elif isinstance(request, GetStatus):
            connection.push(self.status(request.id))
        elif not self._requests.allows(connection, request):
            pass  # it was told
        elif isinstance(request, GetSettings):
            for page in listing.setting_pages(request.id, in_force.rows(self.settings)):
                connection.push(page)
        elif isinstance(request, Bye):
            connection.push(Done(id=request.id))
            connection.end()
        else:
            self._requests.handle(connection, request, fds)

    def _follow(self) -> None:
        """A client's request is done, or it left: make streams and stages as they should be now, and tell watchers."""
        if self.network is not None:
            self.network.local_changed()
        else:
            self._deliver(self._watchers.changed(self.local.take_changes()))
        self._stages.follow()

    def _followed(self) -> None:
        self._views.follow()
        self._ranges.follow()
        self._best_streams.follow()

    def _leaving(self, incarnation: int) -> None:
        if self.network is not None:
            self.network.leaving(incarnation)

    def _taken(self, row: PublisherRow) -> None:
        if self.network is not None:
            self.network.taken(row)

    def _unused(self) -> set[str]:
        return set(self.local.tags.unused()) - self.settings.tags.keys()

    def _expire(self, names: list[str]) -> None:
        self._deliver(self.local.tags.expire(names))
        self._follow()

    def status(self, request_id: int = 0) -> Status:
        return Status(
            id=request_id, node=self._node, pid=os.getpid(), version=package_version(),
            uptime_s=self._loop.time() - self._started, clients=len(self.local.clients.keys() - {OWN_CLIENT}),
            tags=len(self.local.table), rings=len(self.local.rings), budget_bytes=self.local.budget.total_bytes,
            used_bytes=self.local.budget.used_bytes, bad_messages=self.bad_messages, slow_clients=self.slow_clients,
            lingering=self.local.budget.lingering, until_idle=self._until_idle,
            refusals=self.network.refusals() if self.network is not None else {}, mesh=self.settings.mesh,
            clocks=self.network.clocks.violations() if self.network is not None else [],
            identity=str(identity_folder(self.settings) or ""), exposed=is_exposed(self.settings),
            config=self.settings.config, metrics=self.settings.values["metrics"] or "",
            mistakes=self.mistakes + self._background.failures
            + (self.network.mesh.mistakes if self.network is not None else 0),
        )  # fmt: skip

    def _deliver(self, out: list[Send]) -> None:
        for client, message, fds in out:
            connection = self._connections.get(client)
            if connection is not None:
                connection.push(message, fds)
        for fanout, outcome in self.local.take_stalled():
            self._flushing.watch(fanout, outcome)

    def _retry(self, fanout: FanOut) -> None:
        self.local.retry(fanout)
        self._deliver([])

    # ------------------------------------------------------------------ this node's name

    def _named(self, what: NameConflict | NameCleared) -> None:
        """Serve nobody while an older daemon has this one's name. Clients attach again by themselves afterwards, as
        they do with a daemon that was restarted; until then their rings go on working."""
        if isinstance(what, NameCleared):
            self._greeting.name_taken = None
            logger.warning("this daemon is the only one called %r now, and serves again", self._node)
        elif what.mine:
            self._greeting.name_taken = NameTaken(self._node, ", ".join(what.holder.control) or "an unknown address")
            for connection in list(self._connections.values()):
                self._broken(connection, "name taken")

    # ------------------------------------------------------------------ departures

    def _broken(self, connection: Connection, reason: str) -> None:
        """Stop serving a connection. What it held is withdrawn afterwards: this may be in the middle of a delivery."""
        if connection.closed:
            return
        connection.close()
        if reason == "slow":
            self.slow_clients += 1
            logger.warning("client %d does not read its notices; disconnected", connection.number)
        self._loop.call_soon(self._departed, connection, reason)

    def _departed(self, connection: Connection, reason: str) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        peer = self._peers.pop(connection.number)
        self.limits.leave(connection.number, peer)
        logger.info("client %d left: %s", connection.number, reason)
        self._watchers.leave(connection.number)
        self._deliver(self.local.leave(connection.number))
        self._stages.client_gone(connection.number)
        if self.network is not None:
            self.network.buffers.unwant(connection.number)
        self._follow()
        self._sessions[peer.pid] -= 1
        if self._sessions[peer.pid] <= 0:
            del self._sessions[peer.pid]
        if (reason == "bye" or not connection.greeted) and peer.pid not in self._sessions:
            self._processes.release(peer.pid)
        if not self._connections:
            self._listener.nobody_inside()

    def _process_died(self, pid: int) -> None:
        for number in [number for number, peer in self._peers.items() if peer.pid == pid]:
            connection = self._connections[number]
            connection.close()
            self._departed(connection, "died")
        self.local.process_died(pid)

    def _close(self) -> None:
        self.audit.close()
        self._unused_tags.close()
        self._ranges.close()
        self._best_streams.close()
        self._listener.close()
        for connection in self._connections.values():
            connection.close()
        self._processes.close()
        self.local.close()
