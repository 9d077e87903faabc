"""How long the mesh waits for what, in nanoseconds of the node's own steady clock, and how that grows with its size.

Nobody's clock is ever compared with another's. Pure values.
"""

from __future__ import annotations

import math

import msgspec

from ringcast.daemon.mesh.core.roster import SMALL

_S = 1_000_000_000
_MS = 1_000_000


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults suit a local network; a slower one wants all of them longer."""

    probe_ns: int = 500 * _MS
    """One neighbour is pinged each time."""
    ack_ns: int = 250 * _MS
    """How long to wait for an answer before others are asked to ping, for one more `probe_ns`."""
    suspicion_ns: int = 2 * _S
    """How long a suspect has at least to object."""
    refused_ns: int = 500 * _MS
    """The same when its host says that nobody listens there any more, and nobody else reaches it either."""
    hello_ns: int = 5 * _S
    """A link must say who it is within."""
    redial_ns: int = 200 * _MS
    """First wait after a dial that failed; it doubles."""
    max_redial_ns: int = 5 * _S
    foreign_ns: int = 60 * _S
    """How long a node of another mesh is not called again."""
    grace_ns: int = 1 * _S
    """How long the daemon with the higher number waits for the other to dial."""
    idle_ns: int = 30 * _S
    """After how long an unused link to a node that is no neighbour is closed."""
    push_ns: int = 50 * _MS
    """How long news is gathered before it is passed on in a large mesh: one round."""
    summary_ns: int = 1 * _S
    """One neighbour is asked whether our tables agree."""
    forget_ns: int = 3600 * _S
    """How long dead nodes are remembered, and dialled now and then."""

    def suspicion_of(self, nodes: int) -> int:
        """Grows with the logarithm of the mesh, as the time does that news takes to reach all (SWIM, section 4.2)."""
        return max(self.suspicion_ns, int(4 * self.probe_ns * math.log10(max(nodes, 1))))

    def push_of(self, nodes: int) -> int:
        return 0 if nodes <= SMALL else self.push_ns

    @staticmethod
    def fanout_of(nodes: int) -> int:
        """To how many neighbours news is passed: to all in a small mesh, else so that about one node in n is missed."""
        return SMALL if nodes <= SMALL else math.ceil(math.log(nodes)) + 1
