"""The daemon as a process: its settings, the server, signals, the service manager, and metrics, from start to end.

Invariant: a configuration that cannot be used changes nothing, neither at the start nor when it is reloaded.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringcast import _core
from ringcast.daemon.clients.claim import Claim
from ringcast.daemon.machine import raise_file_limit
from ringcast.daemon.operate import logs
from ringcast.daemon.operate.config_file import is_exposed, metrics_permits, rules_of
from ringcast.daemon.operate.in_force import Settings, changed, taken_over
from ringcast.daemon.operate.systemd import Notifier
from ringcast.daemon.server import Server
from ringcast.errors import BadConfiguration, DaemonUnavailable

if TYPE_CHECKING:
    from ringcast.daemon.observe.metrics_server import MetricsServer

logger = logging.getLogger("ringcast.daemon")


class Program:
    """`settle` reads the settings anew; it raises BadConfiguration, ValueError."""

    def __init__(
        self, settings: Settings, settle: Callable[[], Settings], *, idle_linger_s: float | None, ready_fd: int | None
    ) -> None:
        self._settings = settings
        self._settle = settle
        self._idle_linger_s = idle_linger_s
        self._ready_fd = ready_fd
        self._notifier = Notifier()
        self._server: Server | None = None
        self._metrics: MetricsServer | None = None
        self._serving = False
        self._reload_wanted = False
        self._terminal = sys.stderr.isatty()

    def run(self) -> None:
        """Until SIGTERM or SIGINT, or until idle. Raises DaemonRunning, DaemonUnavailable, OSError (no address to
        listen on)."""
        self._set_up_logs()
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        # Before anybody can find this daemon by its socket. They are called in the loop, so not before `server.run`.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        raise_file_limit()
        claim = Claim(self._settings.values["socket"], shared=rules_of(self._settings).shared)
        try:
            self._server = Server(claim, _core, self._settings, idle_linger_s=self._idle_linger_s)
            if self._terminal:
                print(f"ringcast daemon: listening on {claim.socket_path}; Ctrl-C ends it", file=sys.stderr)
            await self._with_metrics(self._server)
        finally:
            self._notifier.close()
            claim.close()

    async def _with_metrics(self, server: Server) -> None:
        address = self._settings.values["metrics"]
        if not address:
            await server.run(self._ready)
            return
        from ringcast.daemon.observe.metrics_server import MetricsServer

        try:
            metrics = MetricsServer(server, address, metrics_permits(self._settings))
        except OSError as exc:
            raise DaemonUnavailable(
                server.socket_path, f"metrics cannot be served at {address}: {exc.strerror}; choose another --metrics"
            ) from exc
        self._metrics = metrics
        try:
            await server.run(self._ready)
        finally:
            metrics.close()

    def _ready(self) -> None:
        # What was made until now is here to stay. Left to the collector, each full collection looks through all of it
        # and holds the loop up for tens of milliseconds.
        gc.collect()
        gc.freeze()
        # With a thousand channels a full collection holds the loop for 20 ms: ten times rarer than by default.
        gc.set_threshold(700, 10, 100)
        self._notifier.ready(_words(self._settings))
        if self._ready_fd is not None:
            try:
                os.write(self._ready_fd, b"ready\n")
                os.close(self._ready_fd)
            except OSError:  # whoever asked for us is gone; others may come
                pass
        self._serving = True
        if is_exposed(self._settings):
            logger.warning(
                "this daemon listens on %s without an identity: whoever reaches it can join the mesh, read and write; "
                "close the mesh with 'ringcast secure', or listen on 127.0.0.1",
                ", ".join(self._settings.values["listen"]),
            )
        if self._reload_wanted:
            self._reload()

    def _stop(self) -> None:
        self._notifier.stopping()
        if self._server is not None:
            self._server.stop()

    # ------------------------------------------------------------------ reloading

    def _reload(self) -> None:
        """SIGHUP. What can be changed while running is changed; what cannot is said."""
        if self._terminal and not os.isatty(sys.stderr.fileno()):  # it was closed, which is the other meaning of SIGHUP
            self._stop()
            return
        if not self._serving:
            self._reload_wanted = True
            return
        self._notifier.reloading()
        try:
            self._take_over(self._settle())
        except (BadConfiguration, ValueError) as exc:
            logger.error("the configuration was not reloaded, the old one stays in force: %s", exc)
        self._notifier.ready(_words(self._settings))

    def _take_over(self, wanted: Settings) -> None:
        live, fixed = changed(self._settings, wanted)
        settings = taken_over(self._settings, wanted)
        permits = metrics_permits(settings)
        self._settings = settings
        self._set_up_logs()
        if self._metrics is not None:
            self._metrics.take_over(permits)
        if self._server is not None:
            self._server.take_over(self._settings)
        for key in fixed:
            logger.warning(
                "%s is %r until the daemon is restarted; %s says %r",
                key, self._settings.values[key], wanted.origins[key], wanted.values[key],
            )  # fmt: skip
        logger.warning("the configuration was reloaded; changed: %s", ", ".join(live) or "nothing")

    def _set_up_logs(self) -> None:
        values = self._settings.values
        logs.set_up(values["log"], values["log_level"], self._settings.name)


def _words(settings: Settings) -> str:
    where = ", ".join(settings.values["listen"]) or "no network"
    mesh = f", mesh {settings.mesh}" if settings.mesh else ""
    return f"node {settings.name}{mesh}, {where}"
