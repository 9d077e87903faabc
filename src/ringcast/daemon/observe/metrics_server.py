"""Metrics over HTTP, for Prometheus, from threads of their own.

Invariants: a scrape costs the daemon's loop short slices only: the text is made on the scrape's thread, from a snapshot
that the loop took (`ringcast.daemon.observe.snapshot`). Where tokens are wanted, nothing is taken for whoever shows
none, and what a token sees is of tags that its rules name. However many connect, threads are few.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from typing import Any

from ringcast.daemon.access.pace import Bucket
from ringcast.daemon.access.tokens import Permit, Permits
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
MOST_AT_ONCE = 16
MOST_PER_S = 100
"""Connections; those beyond are closed before a thread is made for them."""


class MetricsServer:
    """Serves at `address` until `close`; with `permits`, whoever shows a token. Raises OSError, ResourceLimit
    (prometheus_client is not installed)."""

    def __init__(self, server: Server, address: str, permits: Permits | None) -> None:
        try:
            from prometheus_client import ProcessCollector
        except ImportError as exc:
            raise ResourceLimit(
                "metrics need the package prometheus_client", "pip install 'ringcast[metrics]', or leave --metrics out"
            ) from exc
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._process = ProcessCollector(registry=None)
        self._http = _Http(address, permits, self._write, self._refused)
        self._thread = Thread(target=self._http.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        # While a thread makes text, the loop waits at most this long for the interpreter's lock.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def take_over(self, permits: Permits | None) -> None:
        """Other rules are in force from the next scrape on."""
        self._http.permits = permits

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _write(self, permit: Permit) -> bytes:
        """On the scrape's thread. Raises TimeoutError."""
        from ringcast.daemon.observe.exposition import write
        from ringcast.daemon.observe.metrics import families

        seen = snapshot.seen_by(permit, self._take())
        return write([*families(seen), *self._process.collect()])

    def _refused(self, host: str, reason: str) -> None:
        """On the scrape's thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(partial(self._server.audit.note, "web", host, "scrape", "", reason))

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

    def __init__(
        self, address: str, permits: Permits | None, write: Callable[[Permit], bytes],
        refused: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        host, port = addresses.split(address, METRICS_PORT)
        self.address_family = socket.AF_INET6 if addresses.is_ipv6(host) else socket.AF_INET
        self.permits = permits
        self.write = write
        self.refused = refused
        self._pace = Bucket(MOST_PER_S, 2 * MOST_PER_S, time.monotonic())
        self._places = BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((host, port), _Scrape)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        if self._pace.wait_s(time.monotonic()):
            return False
        return self._places.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is to be had
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("metrics: a scrape of %s broke", client_address[0], exc_info=True)

    def permit(self, header: str) -> Permit | None:
        """Of whoever sends this Authorization; None: it is to go."""
        permits = self.permits
        if permits is None:
            return Permit()
        scheme, _, token = header.partition(" ")
        return permits.of(token.strip()) if scheme.lower() == "bearer" else None


class _Scrape(BaseHTTPRequestHandler):
    timeout = 10.0
    """For whoever connects and says nothing."""
    server: _Http

    def do_GET(self) -> None:
        from ringcast.daemon.observe.exposition import CONTENT_TYPE

        said = self.headers.get("Authorization", "")
        permit = self.server.permit(said)
        if permit is None:
            self.server.refused(str(self.client_address[0]), "a wrong token" if said else "no token")
            self._refuse(401, "metrics need a token: Authorization: Bearer TOKEN", "WWW-Authenticate", "Bearer")
            return
        if self.path.partition("?")[0] not in PATHS:
            self.send_error(404, "metrics are at /metrics")
            return
        try:
            body = self.server.write(permit)
        except TimeoutError as exc:
            self.send_error(503, str(exc) or "the daemon is busy")
            return
        self._answer(200, body, CONTENT_TYPE)

    def _refuse(self, code: int, reason: str, *header: str) -> None:
        self._answer(code, f"{reason}\n".encode(), "text/plain; charset=utf-8", header)

    def _answer(self, code: int, body: bytes, kind: str, header: tuple[str, ...] = ()) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if header:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        logger.debug("metrics: " + format, *args)
