"""How much CPU does a subscriber use while nothing is sent, together with the daemon or server it needs?

All contenders idle at the same time: what is measured is the time their threads spend on a core, not how fast they are.
"""

from __future__ import annotations

import contextlib
import time

from harness import machine
from harness.command import main
from harness.process import PeerFailed
from harness.rows import Row, at_most, entry
from harness.run import Run
from harness.stage import Stage, stage

SETTLE_S = 1.0
LIMIT_S = 30.0
MEASURABLE_PERCENT = 0.1


def _rest(scene: Stage) -> Stage:
    """Open a source that stays silent and a sink that waits."""
    _, sink = scene.cast({"end": "source", "fan_out": False}, {"end": "sink", "fan_out": False})
    sink.ask("expect", LIMIT_S, count=1)
    sink.post("rest")
    return scene


def _cpu_ns(scene: Stage) -> int:
    """Of the sink, and of the server where there is one; not of the worker that only started the server."""
    server = [scene.server_pid] if scene.server_pid is not None else []
    return sum(machine.cpu_ns(pid) for pid in [*server, scene.workers[-1].pids[0]])


def _wake(scene: Stage) -> None:
    """Send one message: the sink must have been listening all the time."""
    *_, source, sink = scene.workers
    source.ask("pump", LIMIT_S, count=1)
    sink.reply(LIMIT_S)


def _shares(run: Run, scenes: list[Stage], seconds: float) -> dict[str, float]:
    """Percent of a core by contender, over `seconds` of silence."""
    time.sleep(SETTLE_S)
    before = [_cpu_ns(scene) for scene in scenes]
    started = time.monotonic_ns()
    time.sleep(seconds)
    elapsed = time.monotonic_ns() - started
    after = [_cpu_ns(scene) for scene in scenes]
    return {
        scene.contender.name: 100 * (now - then) / elapsed
        for scene, now, then in zip(scenes, after, before, strict=True)
    }


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's line, then everybody's share."""
    waiting = [contender for contender in run.offering("stream") if "block" in contender.offers]
    with contextlib.ExitStack() as stack:
        scenes: list[Stage] = []
        for _, contender in run.alternate("idle", 1, waiting):
            try:
                scenes.append(_rest(stack.enter_context(stage(contender, run.troupe))))
            except PeerFailed as exc:
                run.notes.append(f"{contender.name} failed in idle: {exc}")
        percent = _shares(run, scenes, 4.0 if run.quick else 15.0)
        for scene in scenes:
            try:
                _wake(scene)
            except PeerFailed as exc:
                del percent[scene.contender.name]
                run.notes.append(f"{scene.contender.name} failed in idle, it did not wake up: {exc}")
    peers = [share for who, share in percent.items() if who != run.ours]
    name = "idle, daemon and a subscribed session together: no measurable CPU (under 0.1 % of a core)"
    rows = [at_most(name, percent.get(run.ours), "%", MEASURABLE_PERCENT, min(peers, default=None))]
    rows += [entry("idle CPU of subscriber and server", who, "", share, "%") for who, share in percent.items()]
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))
