"""How much CPU does a subscriber use while nothing is sent, together with the daemon or server it needs?

All contenders idle at the same time: what is measured is the time their threads spend on a core, not how fast they are.
"""

from __future__ import annotations

import contextlib
import time

from harness import machine
from harness.command import main
from harness.group import Group, grouped
from harness.process import PeerFailed
from harness.rows import Row, at_most, entry
from harness.run import Run

SETTLE_S = 1.0
LIMIT_S = 30.0
MEASURABLE_PERCENT = 0.1


def _rest(group: Group) -> Group:
    """Open a source that stays silent and a sink that waits."""
    _, sink = group.start({"end": "source", "fan_out": False}, {"end": "sink", "fan_out": False})
    sink.ask("expect", LIMIT_S, count=1)
    sink.post("rest")
    return group


def _cpu_ns(group: Group) -> int:
    """Of the sink, and of the server where there is one; not of the worker that only started the server."""
    server = [group.server_pid] if group.server_pid is not None else []
    return sum(machine.cpu_ns(pid) for pid in [*server, group.workers[-1].pids[0]])


def _wake(group: Group) -> None:
    """Send one message: the sink must have been listening all the time."""
    *_, source, sink = group.workers
    source.ask("pump", LIMIT_S, count=1)
    sink.reply(LIMIT_S)


def _shares(run: Run, groups: list[Group], seconds: float) -> dict[str, float]:
    """Percent of a core by contender, over `seconds` of silence."""
    time.sleep(SETTLE_S)
    before = [_cpu_ns(group) for group in groups]
    started = time.monotonic_ns()
    time.sleep(seconds)
    elapsed = time.monotonic_ns() - started
    after = [_cpu_ns(group) for group in groups]
    return {
        group.contender.name: 100 * (now - then) / elapsed
        for group, now, then in zip(groups, after, before, strict=True)
    }


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's line, then everybody's share."""
    waiting = [contender for contender in run.offering("stream") if "block" in contender.offers]
    with contextlib.ExitStack() as stack:
        groups: list[Group] = []
        for _, contender in run.alternate("idle", 1, waiting):
            try:
                groups.append(_rest(stack.enter_context(grouped(contender, run.workers))))
            except PeerFailed as exc:
                run.notes.append(f"{contender.name} failed in idle: {exc}")
        percent = _shares(run, groups, 4.0 if run.quick else 15.0)
        for group in groups:
            try:
                _wake(group)
            except PeerFailed as exc:
                del percent[group.contender.name]
                run.notes.append(f"{group.contender.name} failed in idle, it did not wake up: {exc}")
    peers = [share for who, share in percent.items() if who != run.ours]
    name = "idle, daemon and a subscribed session together: no measurable CPU (under 0.1 % of a core)"
    rows = [at_most(name, percent.get(run.ours), "%", MEASURABLE_PERCENT, min(peers, default=None))]
    rows += [entry("idle CPU of subscriber and server", who, "", share, "%") for who, share in percent.items()]
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))
