"""A measuring process on a node: `python -m ringcast.lab.testbed.worker`, driven by JSON lines on its standard input.

`{"do": "open", "end": KIND, "name": NAME, ...}` opens an end by its name in `ENDS`, or an application's own by
`package.module:Class`; `{"do": "connect"}` only connects; any other command is a method of the end with that `name`.
Each line gets one line back: `{"ok": ...}` or `{"error": ...}`. Ends that answer or listen do so on threads of their
own, which sleep in the native core; what is timed runs on the main thread, alone.

Invariant: the process never outlives the one that started it, because the kernel ends it then.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pkgutil
import signal
import sys
from typing import Any

import ringcast
from ringcast.lab.adamant.field import ends as field
from ringcast.lab.measuring import datagrams, round_trip, side_by_side, stages, stream

_PR_SET_PDEATHSIG = 1


ENDS: dict[str, Any] = {
    "ping": round_trip.Ping,
    "echo": round_trip.Echo,
    "listener": round_trip.Listener,
    "relay": round_trip.Relay,
    "pacer": stages.Pacer,
    "reader": stages.Reader,
    "source": stream.Source,
    "sink": stream.Sink,
    "steady publisher": field.SteadyPublisher,
    "latency recorder": field.LatencyRecorder,
    "side by side": side_by_side.SideBySide,
    "recorders": side_by_side.Recorders,
    "udp ping": datagrams.Ping,
    "udp echo": datagrams.Echo,
    "udp to many": datagrams.Multicaster,
    "udp of many": datagrams.Listener,
}


class Process:
    """The ends of this process, by name. One session serves all of them."""

    def __init__(self) -> None:
        self._session: ringcast.Session | None = None
        self._ends: dict[str, Any] = {}

    def connect(self) -> ringcast.Session:
        self._session = self._session or ringcast.connect(start=False, program="ringcast lab")
        return self._session

    def open(self, end: str, name: str, **options: Any) -> Any:
        """Returns what the end reports about itself (`tells`), or None."""
        kind = pkgutil.resolve_name(end) if ":" in end else ENDS[end]
        made = kind(**options) if end.startswith("udp") else kind(self.connect(), **options)
        self._ends[name] = made
        return getattr(made, "tells", None)

    def close(self, name: str) -> None:
        self._ends.pop(name).close()

    def close_all(self) -> None:
        for end in self._ends.values():
            end.close()
        if self._session is not None:
            self._session.close()

    def handle(self, command: dict[str, Any]) -> dict[str, Any]:
        """Every failure becomes an answer; the experiment decides what it means."""
        do = command.pop("do")
        try:
            if do == "connect":
                self.connect()
                return {"ok": None}
            if do in ("open", "close"):
                return {"ok": getattr(self, do)(**command)}
            return {"ok": getattr(self._ends[command.pop("name")], do)(**command)}
        except Exception as exc:
            return {"error": f"{type(exc).__name__}: {exc}"}


def main() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w")
    process = Process()
    gc.freeze()  # a collection in the middle would be measured
    for line in sys.stdin:
        print(json.dumps(process.handle(json.loads(line))), file=answers, flush=True)
    process.close_all()


if __name__ == "__main__":
    main()
