"""32 headless participants on four nodes of this machine, each a process: is every block in its slot?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ringcast.conference import crowd
from ringcast.errors import BrokenError
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import at_least, at_most, figure

PARTICIPANTS, NODES = 32, 4


def run(quick: bool, steps: Steps) -> Findings:
    """Raises BrokenError."""
    steps.expect(1)
    steps.step(f"{PARTICIPANTS} participants")
    seconds = 5.0 if quick else 20.0
    with _nodes() as sockets:
        accounts = crowd.run(sockets, PARTICIPANTS, seconds)
    findings = Findings()
    rows = findings.rows
    heard = sum(sum(account.received.values()) for account in accounts)
    rows.append(
        at_least("headless participants on four nodes, each a process", len(accounts), "processes", PARTICIPANTS)
    )
    rows.append(at_most(f"blocks lost, of {heard}", crowd.missing(accounts), "blocks", 0))
    late = sum(account.late for account in accounts)
    rows.append(at_most("blocks late: more than 3 slots after their own", late, "blocks", 0))
    worst = max(account.delay_ms["max"] for account in accounts)
    rows.append(figure("from a block's slot to being received, p95", max(a.delay_ms["p95"] for a in accounts), "ms"))
    rows.append(figure("from a block's slot to being received, at most", worst, "ms"))
    return findings


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
