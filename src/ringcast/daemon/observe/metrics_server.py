"""Metrics over HTTP, for Prometheus, from threads of their own.

Invariant: a scrape costs the daemon's loop short slices only. The text is made on the scrape's thread, from a snapshot
that the loop took (`ringcast.daemon.observe.snapshot`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from ringcast.daemon.observe import snapshot
from ringcast.daemon.operate.configuration import METRICS_PORT
from ringcast.daemon.server import Server
from ringcast.errors import ResourceLimit
from ringcast.model import addresses

logger = logging.getLogger("ringcast.daemon")

SNAPSHOT_S = 5.0
"""A loop that takes longer for a snapshot is in trouble; the scrape then fails, which Prometheus shows as `up == 0`."""
SWITCH_S = 0.0005
PATHS = ("/", "/metrics")


class MetricsServer:
    """Serves at `address` until `close`. Raises OSError, ResourceLimit (prometheus_client is not installed)."""

    def __init__(self, server: Server, address: str) -> None:
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector

            from ringcast.daemon.observe.exposition import write
            from ringcast.daemon.observe.metrics import DaemonCollector
        except ImportError as exc:
            raise ResourceLimit(
                "metrics need the package prometheus_client", "pip install 'ringcast[metrics]', or leave --metrics out"
            ) from exc
        self._server = server
        self._loop = asyncio.get_running_loop()
        registry = CollectorRegistry()
        registry.register(DaemonCollector(self._take))
        ProcessCollector(registry=registry)
        self._http = _Http(address, lambda: write(registry.collect()))
        self._thread = Thread(target=self._http.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        # While a thread makes text, the loop waits at most this long for the interpreter's lock.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _take(self) -> snapshot.Snapshot:
        """On the scrape's thread. Raises TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(snapshot.take(self._server), self._loop)
        try:
            return future.result(SNAPSHOT_S)
        except CancelledError as exc:
            raise TimeoutError("the daemon is ending") from exc
        except TimeoutError:
            future.cancel()
            raise


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a scrape that waits for the loop must not keep the loop from ending

    def __init__(self, address: str, write: Callable[[], bytes]) -> None:
        host, port = addresses.split(address, METRICS_PORT)
        self.address_family = socket.AF_INET6 if addresses.is_ipv6(host) else socket.AF_INET
        self.write = write
        super().__init__((host, port), _Scrape)


class _Scrape(BaseHTTPRequestHandler):
    timeout = 10.0
    """For whoever connects and says nothing."""
    server: _Http

    def do_GET(self) -> None:
        from ringcast.daemon.observe.exposition import CONTENT_TYPE

        if self.path.partition("?")[0] not in PATHS:
            self.send_error(404, "metrics are at /metrics")
            return
        try:
            body = self.server.write()
        except TimeoutError as exc:
            self.send_error(503, str(exc) or "the daemon is busy")
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        logger.debug("metrics: " + format, *args)
