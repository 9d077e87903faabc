"""Ask and answer beside other libraries: the rows of `ringcast bench ask`, which runs them in turn on the same cores.

The adapters are the source checkout's `bench/`. Where it or its peers are missing the rows are there and not met: what
was not measured is not shown.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import Row, at_most, figure
from ringcast.lab.testbed import peers

ASKED = "ask and answer p50"
LIMIT_S = 240.0
PEERS = "nats,pyzmq,zenoh"


def run(quick: bool, steps: Steps) -> Findings:
    steps.expect(1)
    steps.step("ask and answer beside other libraries")
    bench = peers.place()
    if bench is None:
        return _missing(peers.MISSING)
    command = [sys.executable, str(bench / "ask.py"), "--json", "--peers", PEERS, *(["--quick"] if quick else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=bench.parent)
        lines = msgspec.json.decode(done.stdout, type=list[Row])
    except (subprocess.TimeoutExpired, OSError, msgspec.MsgspecError) as exc:
        return _missing(f"bench/ask.py gave no rows: {exc}")
    return Findings(rows=[_row(line) for line in lines if line.name.startswith(ASKED) or "p50" in line.name])


def _row(line: Row) -> Row:
    if line.target is not None:
        return at_most(line.name, line.value, line.unit, line.target, line.reference)
    if line.name.startswith(ASKED):
        return Row(f"{line.name} (no peer was measured)", line.value, line.unit, met=False, kind="asked")
    return figure(line.name, line.value, line.unit, line.reference)


def _missing(why: str) -> Findings:
    rows = [
        Row(f"{ASKED}, {nodes}, one core: {factor:g} times faster than the fastest peer (not measured)", None, "us",
            met=False, kind="asked")
        for nodes, factor in (("one node", 3.0), ("two nodes", 1.5))
    ]  # fmt: skip
    return Findings(rows=rows, notes=[why])
