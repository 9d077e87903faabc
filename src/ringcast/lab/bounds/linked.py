"""Task sets over a link: two nodes of a testbed, each on a core of its own, and 100 Mbit/s between them.

Daemons, publishers and subscribers of a node are bound to its core, and a channel's threads have the stream's priority.
What the kernel does for a packet it does on the core that sends it, mostly; that is part of what was calibrated. All
are on one machine, so both ends read one clock.
"""

from __future__ import annotations

from contextlib import ExitStack

from ringcast.admission.model import System
from ringcast.admission.priorities import class_of
from ringcast.lab.bounds.running import Process, Runner, _closing
from ringcast.lab.bounds.task_sets import MOST_LINKED, NODE, THERE
from ringcast.lab.bounds.witness import Witnesses
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import Topology, Wire


class LinkedRunner(Runner):
    """Entering raises LabError."""

    _transport = "udp"

    def _open(self, stack: ExitStack) -> None:
        bed = stack.enter_context(Testbed(Topology((Wire((NODE, THERE), rate="100mbit", shaper="htb"),))))
        self._mesh = stack.enter_context(MeshNodes(bed, [NODE, THERE]))
        cores = dict(zip((NODE, THERE), affinity.cores(), strict=False))
        self._mesh.pin(cores)
        self._ends = []
        for _ in range(MOST_LINKED):
            for node in (NODE, THERE):
                process = stack.enter_context(_closing(Process(bed.node(node).environment["RINGCAST_SOCKET"])))
                process.pin(cores[node])
                self._ends.append(process)
        self._witnesses = stack.enter_context(Witnesses(self._account))

    def _prioritise(self, system: System, given: dict[str, int]) -> None:
        session = self._mesh.sessions[NODE]
        for stream in system.streams:
            self._mesh.wait_for_way(stream.tag, NODE, THERE)
            session.set_channel(stream.tag, priority=class_of(stream.deadline_s), sched=f"fifo:{given[stream.tag]}")
