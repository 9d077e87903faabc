"""32 headless participants on four nodes of this machine, each a process: is every block in its slot?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ringcast.conference import crowd
from ringcast.conference.headless import Account
from ringcast.errors import BrokenError
from ringcast.lab.conference.cells import Listener, told, values
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.measuring.samples import thinned
from ringcast.record.figures import Measured

PARTICIPANTS, NODES = 32, 4
DELAYS = 500
"""So many of a participant's delays go into the lake, evenly by rank: it receives 19,000 blocks."""


def run(quick: bool, steps: Steps) -> Findings:
    """Raises BrokenError."""
    steps.expect(1)
    steps.step(f"{PARTICIPANTS} participants")
    seconds = 5.0 if quick else 20.0
    with _nodes() as sockets:
        accounts = crowd.run(sockets, PARTICIPANTS, seconds, words=("--delays",))
    found = list(measured(accounts))
    return Findings(judged(sampled.InPython(found)), measured=found)


def measured(accounts: Sequence[Account]) -> Iterator[Measured]:
    for account in accounts:
        listener = Listener(account.name, account.node)
        yield from values(listener, "received", account.received.values(), "blocks")
        yield from values(listener, "lost", crowd.missed(account, accounts), "blocks")
        yield from values(listener, "late", [account.late], "blocks")
        yield from values(listener, "delay", thinned(account.delays_ms, DELAYS), "ms")


def judged(analysed: Analysed) -> list[Row]:
    """Of the samples of the last run."""
    received, lost, late, delays = (
        told(analysed, metric, Listener).values() for metric in ("received", "lost", "late", "delay")
    )
    if not late:
        return []
    heard, missing, too_late = (sum(one["total"] for one in found) for found in (received, lost, late))
    p95, most = (max((one[name] for one in delays), default=None) for name in ("p95", "most"))
    return [
        at_least("headless participants on four nodes, each a process", len(late), "processes", PARTICIPANTS),
        at_most(f"blocks lost, of {heard:.0f}", missing, "blocks", 0),
        at_most("blocks late: more than 3 slots after their own", too_late, "blocks", 0),
        figure("from a block's slot to being received, p95", p95, "ms"),
        figure("from a block's slot to being received, at most", most, "ms"),
    ]


@contextmanager
def _nodes() -> Iterator[list[str]]:
    """The sockets of a mesh, as `ringcast up` makes it."""
    command = [sys.executable, "-m", "ringcast", "up", "--nodes", str(NODES), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mesh:
        assert mesh.stdout is not None
        said = ""
        try:
            while not said.rstrip().endswith("\n}"):
                line = mesh.stdout.readline()
                if not line:
                    raise BrokenError("the mesh of four nodes did not start; what it said stands above")
                said += line
            yield [node["socket"] for node in json.loads(said)["nodes"]]
        finally:
            mesh.terminate()
