"""A measured process: one end of one peer, driven line by line.

Run as `worker.py ADAPTER`, by the interpreter that has the adapter's library. Commands come as JSON lines on standard
input, `{"do": NAME, ...}`, and each gets exactly one JSON line back: `{"ok": ...}`, `{"error": ...}` or
`{"not_offered": ...}`. `describe`, `open` and `serve` are handled here; any other name is a method of the open end. The
worker never outlives the runner: the kernel kills it when the runner dies.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ends.interface import End, NotOffered, Peer, Place
from ends.lifeline import die_with_parent

SERVER_TIMEOUT_S = 10.0


class Worker:
    """The state of one worker: its peers, and the end or the server it holds."""

    def __init__(self, adapter: str) -> None:
        module = importlib.import_module(f"peers.{adapter}")
        self.peers: dict[str, Peer] = {peer.name: peer for peer in module.PEERS}
        self.end: End | None = None
        self.server: subprocess.Popen[bytes] | None = None

    def describe(self) -> list[dict[str, Any]]:
        """What each peer of this adapter is and can do."""
        return [
            {
                "name": peer.name,
                "version": peer.version(),
                "offers": sorted(peer.offers),
                "serves": peer.serves,
                "leftovers": list(peer.leftovers),
            }
            for peer in self.peers.values()
        ]

    def open(self, peer: str, end: str, place: dict[str, Any], **options: Any) -> None:
        """Open an end; `end` is the name of one of `Peer`'s methods."""
        where = _place(place)
        gc.collect()  # of the ends before: some libraries release in finalizers
        self.end = getattr(self.peers[peer], end)(where, **options)

    def serve(self, peer: str, place: dict[str, Any]) -> int:
        """Start the peer's server, wait until it answers, and return its process id."""
        where = _place(place)
        # Its output goes where this worker's errors go: standard output belongs to the replies.
        self.server = subprocess.Popen(
            self.peers[peer].server(where),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            preexec_fn=die_with_parent,
        )
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        while not self.peers[peer].served(where):
            if self.server.poll() is not None:
                raise RuntimeError(f"the server ended with code {self.server.returncode}")
            if time.monotonic() > deadline:
                raise TimeoutError("the server does not answer")
            time.sleep(0.01)
        return self.server.pid

    def close(self) -> None:
        """Release the end and the server."""
        if self.end is not None:
            self.end.close()
            self.end = None
        if self.server is not None:
            self.server.terminate()
            self.server.wait(5.0)
            self.server = None

    def handle(self, command: dict[str, Any]) -> dict[str, Any]:
        """The reply to one command. Every failure is a reply: the runner decides what it means."""
        name = command.pop("do")
        holder = self if name in {"describe", "open", "serve", "close"} else self.end
        try:
            return {"ok": getattr(holder, name)(**command)}
        except NotOffered as exc:
            return {"not_offered": str(exc)}
        except Exception as exc:
            return {"error": f"{type(exc).__name__}: {exc}"}


def _place(fields: dict[str, Any]) -> Place:
    return Place(**{**fields, "folder": Path(fields["folder"])})


def main() -> None:
    die_with_parent()
    # Libraries print to standard output as they please; the replies keep a descriptor of their own.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        worker = Worker(sys.argv[1])
    except ImportError as exc:
        print(json.dumps({"error": f"cannot import: {exc}"}), file=replies, flush=True)
        return
    for line in sys.stdin:
        print(json.dumps(worker.handle(json.loads(line))), file=replies, flush=True)
    worker.close()


if __name__ == "__main__":
    main()
