"""How many stages other nodes may have this one run: each can be a process. Pure.

Invariant: what is counted is what channels to other nodes hold or are about to; equal specs of one node count once.
Subscribers of this node itself are not limited here: they are this machine's own processes.
"""

from __future__ import annotations

from collections import Counter

from ringcast.control.limits import MAX_STAGES_FOR_PEERS, MAX_STAGES_PER_PEER
from ringcast.daemon.rings.demand import StageSpec
from ringcast.errors import ResourceLimit


class StageQuota:
    """Refusals are counted in `refused`."""

    def __init__(self, refused: Counter[str]) -> None:
        self._refused = refused
        self._held: Counter[tuple[str, StageSpec]] = Counter()

    def take(self, node: str, spec: StageSpec | None) -> None:
        """A channel to the node needs what a stage makes; None is no stage. Raises ResourceLimit."""
        if spec is None:
            return
        if (node, spec) not in self._held:
            everybody = {held for _, held in self._held}
            of_node = sum(holder == node for holder, _ in self._held)
            if of_node >= MAX_STAGES_PER_PEER:
                self._refuse(f"node {node!r} has {of_node} streams scaled here, as many as one node may")
            if spec not in everybody and len(everybody) >= MAX_STAGES_FOR_PEERS:
                self._refuse(f"{len(everybody)} streams are scaled here for other nodes, the most that a tag may have")
        self._held[node, spec] += 1

    def release(self, node: str, spec: StageSpec | None) -> None:
        if spec is not None:
            self._held[node, spec] -= 1
            if self._held[node, spec] <= 0:
                del self._held[node, spec]

    def _refuse(self, what: str) -> None:
        self._refused["too many stages"] += 1
        raise ResourceLimit(what, "scale at the subscriber (at='subscriber'), or ask for fewer sizes and rates")
