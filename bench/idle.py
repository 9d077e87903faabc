"""How much CPU does a subscriber use while nothing is sent, together with the daemon or server it needs?

All contenders idle at the same time: what is measured is the time their threads spend on a core, not how fast they are.
"""

from __future__ import annotations

import contextlib
import time

from harness import machine
from harness.cast import Contender
from harness.command import main
from harness.rows import Row, at_most, entry
from harness.run import Run
from harness.stage import Stage, stage

SETTLE_S = 2.0
LIMIT_S = 30.0
MEASURABLE_PERCENT = 0.1


def _enter(run: Run, contender: Contender, stack: contextlib.ExitStack) -> Stage:
    """A stage with a source that is silent and a sink that waits."""
    scene = stack.enter_context(stage(contender, run.folder))
    _, sink = scene.cast({"end": "source", "fan_out": False}, {"end": "sink", "fan_out": False})
    sink.ask("expect", LIMIT_S, count=1)
    sink.post("rest")
    return scene


def _cpu_ns(scene: Stage) -> int:
    """Of the sink, and of the server where there is one; not of the worker that only started the server."""
    server = scene.workers[0].pids[1:]
    return sum(machine.cpu_ns(pid) for pid in [*server, scene.workers[-1].pids[0]])


def _leave(scene: Stage) -> None:
    """Wake the sink: it must have been listening all the time."""
    *_, source, sink = scene.workers
    source.ask("pump", LIMIT_S, count=1)
    sink.reply(LIMIT_S)


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's line, then everybody's share."""
    seconds = 5.0 if run.quick else 15.0
    percent: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        scenes: dict[Contender, Stage] = {}
        waiting = [contender for contender in run.offering("stream") if "block" in contender.offers]
        for _, contender in run.alternate("idle", 1, waiting):
            if scene := run.attempt("idle", contender, _enter, run, contender, stack):
                scenes[contender] = scene
        time.sleep(SETTLE_S)
        before = {contender: _cpu_ns(scene) for contender, scene in scenes.items()}
        started = time.monotonic_ns()
        time.sleep(seconds)
        elapsed = time.monotonic_ns() - started
        after = {contender: _cpu_ns(scene) for contender, scene in scenes.items()}
        for contender, scene in scenes.items():
            run.attempt("idle", contender, _leave, scene)
            percent[contender.name] = 100 * (after[contender] - before[contender]) / elapsed
    ours = next((contender.name for contender in run.contenders if contender.ours), "ringcast")
    peers = [share for who, share in percent.items() if who != ours]
    name = "idle, daemon and a subscribed session together: no measurable CPU (under 0.1 % of a core)"
    rows = [at_most(name, percent.get(ours), "%", MEASURABLE_PERCENT, min(peers, default=None))]
    rows += [entry("idle CPU of subscriber and server", who, "", share, "%") for who, share in percent.items()]
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))
