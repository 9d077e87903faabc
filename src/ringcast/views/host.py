"""The process that makes views on a node: `python -m ringcast.views.host SOCKET`.

The daemon starts it when somebody, on whichever node, subscribes to a view that is made here. It follows the table like
any other program: views with subscribers run, others end, and so does it when nothing has run for a while. A view that
crashes it costs views and nothing else; the daemon starts it again.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from typing import Any

import ringcast
from ringcast.client.attachment import Attachment
from ringcast.errors import RingcastError
from ringcast.model.policy import PREFIX, View, described_view
from ringcast.session import Session
from ringcast.views.runner import ViewRunner

logger = logging.getLogger("ringcast")

LOOK_S = 0.25
IDLE_S = 10.0


class Host:
    def __init__(self, session: Session, attachment: Attachment) -> None:
        self._session = session
        self._attachment = attachment
        self._running: dict[str, ViewRunner] = {}
        self._refused: dict[str, str] = {}
        self.busy_s = time.monotonic()

    def look(self) -> None:
        """Start and end views. Raises DaemonUnavailable, ClosedError."""
        wanted = self._wanted()
        for name in [name for name in self._running if name not in wanted or not self._running[name].running]:
            self._running.pop(name).close()
        for name, view in wanted.items():
            if name not in self._running:
                self._begin(name, view)
        for name, runner in self._running.items():
            alive = {row.info.incarnation for row in self._publishers(wanted[name].of) if row.alive}
            runner.keep_only(alive)
        if self._running:
            self.busy_s = time.monotonic()

    def _wanted(self) -> dict[str, View]:
        found: dict[str, View] = {}
        for row in self._session.tags(f"{PREFIX}/**"):
            view = described_view(row.attributes.schema)
            if view is not None and view.tag == row.name and row.subscribers and self._made_here(view):
                found[row.name] = view
        return found

    def _made_here(self, view: View) -> bool:
        if view.at != "publisher":
            return view.at == f"node:{self._session.node}"
        return any(row.alive and row.info.node == self._session.node for row in self._publishers(view.of))

    def _publishers(self, tag: str) -> list[Any]:
        try:
            return self._session.tag(tag, create=False).publishers()
        except RingcastError:
            return []

    def _begin(self, name: str, view: View) -> None:
        try:
            base: Any = self._session.tag(view.of, create=False)
            shown: Any = self._session.tag(name, create=False)
            self._running[name] = ViewRunner(self._attachment, base, shown, view)
            self._refused.pop(name, None)
        except RingcastError as exc:
            if self._refused.get(name) != str(exc):
                self._refused[name] = str(exc)
                logger.warning("no view of %r yet: %s", view.of, exc)

    def close(self) -> None:
        for runner in self._running.values():
            runner.close()


def main(socket_path: str) -> int:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with ringcast.connect(socket_path, start=False, program="ringcast views") as session:
        host = Host(session, session.attachment)
        try:
            while not stopping.wait(LOOK_S):
                if not session.connected:  # the next daemon starts one of its own
                    return 0
                host.look()
                if time.monotonic() - host.busy_s > IDLE_S:
                    return 0
        except RingcastError as exc:
            if session.connected:
                logger.error("views end: %s", exc)
        finally:
            host.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
