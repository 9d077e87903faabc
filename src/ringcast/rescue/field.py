"""A mission in a real network: daemons on nodes of a testbed, sensors as processes on them, a recorder at the base.

    eyes (infrared of the UAVs) --+
    sky (their pose and GPS) -----+-- switch -- base (records)
    street (video) ---------------+

Packets are Ethernet's 1500 bytes, so that a frame is seven to ten of them. What is lost is lost by the transport that
is set for the tags (`lossy+...`), each stream by a seed of its own. `ahead_s` is how far the clock of `eyes` is ahead:
of its daemon and of its sensors. Unless `translated`, the base is told that all clocks are one.
Knows nothing of Spark: what comes of it is a recording, and how the clocks were measured.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ringcast.control.status import ClockStatus
from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import Topology, Wire
from ringcast.record.recorder import Recorder
from ringcast.record.writer import RecordingWriter
from ringcast.rescue.mission import Mission, Settings
from ringcast.transport.stack import LOSSY

EYES, SKY, STREET, BASE = "eyes", "sky", "street", "base"
PLAYS = {EYES: ["uav*-camera"], SKY: ["uav?", "uav??"], STREET: ["street*"]}
"""Which of the mission's nodes a node of the testbed stands for."""
PATTERNS = ("uav/**", "street/**")

TOPOLOGY = Topology(tuple(Wire((name, "hub")) for name in (*PLAYS, BASE)), {"hub": "switch"})

_TICK_NS = 100_000_000
_LEAD_NS = 500_000_000
_PATIENCE_S = 60.0
_QUIET_S = 1.0
"""After so long without a message nothing comes any more: who does not repair cannot say how many should have."""
_POLL_S = 0.02


@dataclass(frozen=True)
class Recorded:
    """A performance as the base has it. `mission` is in the time at which it was played, for the truth."""

    path: Path
    mission: Mission
    sent: int
    received: int
    lost: int


class Field(Opened):
    """Daemons and sensors, ready. Entering raises LabError, LabUnavailable without root."""

    def __init__(self, settings: Settings, ahead_s: float = 0.0, *, translated: bool = True) -> None:
        self._settings = settings
        self._translated = translated
        self._ahead = {"RINGCAST_CLOCK_AHEAD_S": str(ahead_s)} if ahead_s else {}
        self._sensors: dict[str, Actor] = {}
        self._tags: list[str] = []

    def _open(self, stack: ExitStack) -> None:
        ahead = {EYES: self._ahead}
        if not self._translated:
            config = Path(stack.enter_context(TemporaryDirectory())) / "ringcast.toml"
            config.write_text('[clock]\nsource = "common"\n')
            ahead[BASE] = {"RINGCAST_CONFIG": str(config)}
        bed = stack.enter_context(Testbed(TOPOLOGY))
        self._mesh = stack.enter_context(MeshNodes(bed, [*PLAYS, BASE], ahead))
        for node, plays in PLAYS.items():
            actor = stack.enter_context(Actor(bed.node(node), extra=ahead.get(node)))
            settings = {**asdict(self._settings), "skew_ns": {}}
            self._tags += actor.ask(
                "open", end="ringcast.rescue.sensors:Sensors", name="sensors", settings=settings, plays=plays
            )
            self._sensors[node] = actor
        self._mesh.wait_for_publisher(*self._tags)

    def record(self, path: Path, transport: str, pace: float = 1.0) -> Recorded:
        """Play the mission once and record it at the base, by that transport. Raises LabError, QosMismatch."""
        session = self._mesh.sessions[BASE]
        chosen = {tag: _seeded(transport, number) for number, tag in enumerate(sorted(self._tags), 1)}
        for tag, text in chosen.items():
            session.set_channel(tag, transport=text)
        with RecordingWriter(path) as writer:
            recorder = Recorder(session, PATTERNS, writer)
            failures: list[BaseException] = []
            thread = threading.Thread(target=_run, args=(recorder, failures), daemon=True)
            thread.start()
            try:
                self._mesh.wait(
                    lambda: bool(failures) or self._incoming() == chosen,
                    "the base did not open channels to all sensors",
                )
                if failures:
                    raise LabError(f"the recorder failed: {failures[0]}") from failures[0]
                begin_ns = (time.time_ns() + _LEAD_NS) // _TICK_NS * _TICK_NS
                for actor in self._sensors.values():
                    actor.post("play", name="sensors", begin_ns=begin_ns, pace=pace)
                patience = self._settings.seconds / pace + _PATIENCE_S
                sent = sum(sum(actor.reply(patience).values()) for actor in self._sensors.values())
                _settle(recorder, sent, failures)
            finally:
                recorder.stop()
                thread.join()
        if failures:
            raise LabError(f"the recorder failed: {failures[0]}") from failures[0]
        self._mesh.wait(lambda: not self._incoming(), "the recorder's channels were not closed")
        mission = Mission(replace(self._settings, begin_ns=begin_ns))
        return Recorded(path, mission, sent, recorder.rows, recorder.lost)

    def clocks(self) -> dict[str, ClockStatus]:
        """How far each node's clock is ahead of the base's. Times were translated by it as messages arrived."""
        return {node: self._mesh.sessions[BASE].clock(node) for node in PLAYS}

    def _incoming(self) -> dict[str, str]:
        """By which transport the base receives what."""
        rows = self._mesh.sessions[BASE].channels(why=False)
        return {row.tag: row.transport for row in rows if row.direction == "in" and row.tag in self._tags}


def _seeded(transport: str, number: int) -> str:
    # With one seed for all, cameras would lose the same frames, and nobody would be left to see a survivor.
    return f"{transport},seed={number}" if transport.startswith(f"{LOSSY}+") else transport


def _run(recorder: Recorder, failures: list[BaseException]) -> None:
    try:
        recorder.run()
    except BaseException as exc:  # told on the thread that waits
        failures.append(exc)


def _settle(recorder: Recorder, sent: int, failures: list[BaseException]) -> None:
    """Until all that was sent is received or known to be lost, or nothing comes any more."""
    known, since = -1, time.monotonic()
    while known < sent and not failures and time.monotonic() - since < _QUIET_S:
        time.sleep(_POLL_S)
        now = recorder.rows + recorder.lost
        if now != known:
            known, since = now, time.monotonic()
