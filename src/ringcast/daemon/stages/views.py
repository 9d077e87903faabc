"""Who makes the views of this node: one process, `ringcast.views.host`, while a view that is made here has subscribers.

`follow` starts it. It ends by itself when nothing is left to do, and with the daemon. Invariant: a host that dies is
started again, each time after a longer pause, while it is wanted; no request waits for it. Must not know what a policy
does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys

from ringcast.daemon.background import Background
from ringcast.daemon.table.table import TagTable
from ringcast.model.policy import PREFIX, described_view

logger = logging.getLogger("ringcast.daemon")

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0
END_S = 5.0


class Views:
    def __init__(self, table: TagTable, socket_path: str, background: Background) -> None:
        self._table = table
        self._socket_path = socket_path
        self._background = background
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def follow(self) -> None:
        """Start the host when it is wanted and not there."""
        if self._task is None and not self._closed and self.wanted():
            self._task = self._background.start("views", self._host(), self._ended)

    def wanted(self) -> bool:
        """Whether somebody, on whichever node, subscribes to a view that is made on this one."""
        for row in self._table.tags(f"{PREFIX}/**"):
            view = described_view(row.attributes.schema)
            if view is None or not self._table.subscribers(row.name):
                continue
            here = self._table.node
            if view.at == f"node:{here}":
                return True
            own = (row.owner == here and row.alive for row in self._table.publishers(view.of))
            if view.at == "publisher" and any(own):
                return True
        return False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def _host(self) -> None:
        pause_s = FIRST_RETRY_S
        while not self._closed and self.wanted():
            try:
                process = await asyncio.to_thread(self._spawn)
                status = await asyncio.to_thread(process.wait)
            except OSError as exc:
                logger.warning("no process makes the views of this node: %s", exc.strerror)
                status = -1
            if status == 0 or self._closed:
                pause_s = FIRST_RETRY_S
            else:
                logger.warning("the process that makes views ended with status %d; it is started again", status)
                pause_s = min(2 * pause_s, LAST_RETRY_S)
            await asyncio.sleep(pause_s)

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ringcast.views.host", self._socket_path],
            # Ctrl-C is for the daemon, with which it ends.
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ),
        )  # fmt: skip
        return self._process

    def _ended(self) -> None:
        self._task = None
        self._process = None

    async def close(self) -> None:
        self._closed = True
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
