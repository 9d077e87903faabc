"""Runs the search and rescue: nodes, processes, Spark; shows what can be seen; ends everybody; has the page written.

Invariant: whatever happens, and when Ctrl-C comes, every process started here is gone when it returns, and nothing is
left but the folder that was asked for.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import ringcast
from ringcast.demo.rescue.actor import Sight
from ringcast.demo.rescue.gauge import Found, Gauge, Stream
from ringcast.demo.rescue.processes import RescueProcesses
from ringcast.demo.rescue.roles import BASE, DETECTIONS, HANDHELD, NODES, RECORDER, SENDERS, SETTINGS, STREET, WEAK_TAG
from ringcast.lab.testbed.local_mesh import LocalNode, local_mesh

if TYPE_CHECKING:
    from ringcast.rescue.search import Concluded, Search
    from ringcast.spark.page import Section

_LOOK_S = 0.5
_POLL_S = 0.1
_LEAD_NS = 1_000_000_000
_TICK_NS = 100_000_000
_DRAIN_S = 150.0
_ARRIVE_S = 20.0


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One look: `elapsed_s` since the sensors began."""

    elapsed_s: float
    streams: dict[str, Stream]
    handheld: Sight
    detections: int
    latest: list[Found]
    batches: int
    batch_s: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    begin_ns: int
    scene: Scene
    detection_delay_s: float
    detection_delay_p95_s: float
    concluded: Concluded


Show = Callable[[Scene], None]
Tell = Callable[[str], None]


def run(out: Path, seconds: float, show: Show, tell: Tell) -> Outcome:
    """Watch for that long. What stays is in `out`: the page, its pictures, the lake and the recording.

    Raises RingcastError: EndedEarly when a process failed, QueryFailed when Spark did, NoJava.
    """
    from ringcast.rescue.search import Search

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ringcast-demo-")))
        nodes = stack.enter_context(local_mesh(NODES, scratch))
        tell(f"three nodes are up: {', '.join(node.name for node in nodes)}")
        sockets = {node.name: node.socket for node in nodes}
        processes = stack.enter_context(RescueProcesses(sockets, scratch, out / "recording"))
        processes.start((*SENDERS, RECORDER, HANDHELD))
        tell(f"started {len(SENDERS)} sensors, a recorder and a handheld, each a process of its own; starting Spark")
        search = stack.enter_context(Search(out / "lake", scratch, SETTINGS, sockets[BASE], DETECTIONS))
        processes.await_ready()
        gauge = _gauge(stack, nodes)
        tell("Spark starts the fusion and compiles it")
        search.start()
        _await_first_batch(processes, search)
        begin_ns = (time.time_ns() + _LEAD_NS) // _TICK_NS * _TICK_NS
        processes.begin(begin_ns)
        tell("the search begins")
        scene = _play(processes, search, gauge, begin_ns, seconds, show)
        processes.end(role.name for role in SENDERS)
        processes.end((HANDHELD.name, RECORDER.name))
        search.stop()
        scene = _complete(scene, search, gauge)
        delays = sorted(found.delay_s for found in gauge.found)
        typical, longest = (delays[int(len(delays) * share)] if delays else 0.0 for share in (0.5, 0.95))
        concluded = search.conclude(
            out / "recording", begin_ns, seconds, out / "index.html",
            lambda channels: _sections(scene, typical, channels), lambda text: tell(f"analysing: {text}"),
        )  # fmt: skip
    return Outcome(
        seconds=seconds, begin_ns=begin_ns, scene=scene, detection_delay_s=typical, detection_delay_p95_s=longest,
        concluded=concluded,
    )  # fmt: skip


def _gauge(stack: ExitStack, nodes: list[LocalNode]) -> Gauge:
    sockets = {node.name: node.socket for node in nodes}
    base, street = (
        stack.enter_context(ringcast.connect(sockets[name], start=False, program="demo view"))
        for name in (BASE, STREET)
    )
    return stack.enter_context(closing(Gauge(base, street)))


def _await_first_batch(processes: RescueProcesses, search: Search) -> None:
    """It is empty and takes longest. What were sent meanwhile would come in one large batch, long after the event."""
    deadline = time.monotonic() + _DRAIN_S
    while not search.batches()[0] and time.monotonic() < deadline:
        processes.check()
        search.check()
        time.sleep(_POLL_S)


def _play(processes: RescueProcesses, search: Search, gauge: Gauge, begin_ns: int, seconds: float, show: Show) -> Scene:
    """Until detections of the last of these seconds have come back, or it is clear that they will not."""
    until_ns = begin_ns + round(seconds * 1e9)
    deadline = time.monotonic() + seconds + _DRAIN_S
    while True:
        scene = _look(processes, search, gauge, begin_ns)
        show(scene)
        newest = max((found.event_ns for found in gauge.found[-20:]), default=0)
        if newest >= until_ns or time.monotonic() > deadline:
            return scene
        processes.check()
        search.check()
        time.sleep(_LOOK_S)


def _complete(scene: Scene, search: Search, gauge: Gauge) -> Scene:
    """The last look, with what Spark published after it: batches went on until it was stopped."""
    deadline = time.monotonic() + _ARRIVE_S
    while len(gauge.found) < search.written and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return msgspec.structs.replace(scene, detections=len(gauge.found))


def _look(processes: RescueProcesses, search: Search, gauge: Gauge, begin_ns: int) -> Scene:
    batches, batch_s = search.batches()
    line = processes.last_line(HANDHELD)
    found = list(gauge.found)
    newest = max((one.event_ns for one in found), default=0)
    return Scene(
        elapsed_s=(time.time_ns() - begin_ns) / 1e9, streams=gauge.streams(),
        handheld=msgspec.json.decode(line, type=Sight) if line else Sight(),
        detections=len(found), latest=[one for one in found if one.event_ns == newest],
        batches=batches, batch_s=batch_s,
    )  # fmt: skip


def _sections(scene: Scene, delay_s: float, channels: list[dict[str, Any]]) -> list[Section]:
    from ringcast.spark.page import Section

    heads = ("into", "from", "tag", "transport", "every", "size", "messages", "bytes", "lost")
    rows = [
        [
            row["at"], row["node"], row["tag"], row["transport"], str(row["every"]),
            f"{row['width']}x{row['height']}" if row["width"] else "-",
            *(str(row[name]) for name in ("messages", "bytes", "lost")),
        ]
        for row in channels
    ]  # fmt: skip
    seen = scene.handheld
    size = "x".join(map(str, reversed(seen.shape)))
    return [
        Section("Channels", "What the nodes' daemons told of themselves, the last of each.", (), heads, rows),
        Section(
            "The weak subscriber",
            f"It received {seen.received} frames of {WEAK_TAG}, {size} and no faster than it asked for, "
            f"{seen.bytes} bytes in all; {seen.lost} were lost. The node between made them smaller.",
        ),
        Section(
            "The way of a detection",
            f"{scene.detections} detections came back on {DETECTIONS}, half of them within {delay_s:.1f} s of what "
            f"they are about; Spark's last batch took {scene.batch_s:.1f} s.",
        ),
    ]
