"""One multicast group per selection: which nodes' links carry what, behind a bridge that listens to IGMP."""

from __future__ import annotations

import time
from pathlib import Path

from ringcast.lab.adamant.field.network import HUB
from ringcast.lab.labmap.asked import RELIABLE_MULTICAST
from ringcast.lab.labmap.field import OBSERVER, LabMapNetwork
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import at_most, figure

SET = "ip link set dev bridge type bridge"
# One after the other: a bridge floods until its querier has waited for the response interval that it had when it was
# switched on, ten seconds unless that was changed before.
_SNOOPING = "; ".join(
    f"{SET} {what}"
    for what in ("mcast_query_response_interval 50 mcast_query_interval 100", "mcast_snooping 1", "mcast_querier 1")
)
SETTLE_S = 1.5


def filtered(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """Two selections, two groups: what arrives at a node that joined one of them, and at one that joined none, when the
    bridge listens to IGMP."""
    steps.expect(1)
    steps.step("groups behind a bridge with IGMP snooping")
    bed.mesh.bed.run_scripts(
        {HUB: _SNOOPING},
        "the bridge cannot listen to IGMP",
    )
    time.sleep(SETTLE_S)
    one, other, stranger = bed.there(3)
    try:
        with bed.bench(
            4000, [one], RELIABLE_MULTICAST, observer={"select": ["bench/block1*/**"]}, frame_s=60.0
        ) as tag:  # fmt: skip
            bed.process(other).ask(
                "open", 30.0, end=OBSERVER, name=f"{tag}-2", tag=tag,
                transport=RELIABLE_MULTICAST, select=["bench/block2*/**"],
            )  # fmt: skip
            before = [_received(bed, node) for node in (one, other, stranger)]
            bed.process(bed.here).ask("drive", 60.0, name=tag, cycles=100, period_s=0.02)
            time.sleep(0.2)
            came = [_received(bed, node) - old for node, old in zip((one, other, stranger), before, strict=True)]
            bed.process(other).ask("close", name=f"{tag}-2")
    finally:
        bed.mesh.bed.run_scripts({HUB: f"{SET} mcast_querier 0; {SET} mcast_snooping 0"}, "cannot reset it")
    share = came[2] / max(came[0], came[1], 1)
    return Findings(
        rows=[
            figure("two selections by multicast: bytes at the node that joined the first", float(came[0]), "B"),
            figure("two selections by multicast: bytes at the node that joined the second", float(came[1]), "B"),
            at_most(
                "bridge with IGMP snooping: bytes at a node that joined none, against one that did", share, "1", 0.1
            ),
        ]
    )


def _received(bed: LabMapNetwork, node: str) -> int:
    lines = Path(f"/proc/{bed.mesh.pids[node]}/net/dev").read_text().splitlines()
    return int(next(row for row in lines if row.strip().startswith(f"to-{HUB}:")).split()[1])
