"""How much others disturbed a measurement: CPU that other programs used, and time the hypervisor took away.

When that is not near zero, do not trust a close verdict.
"""

from __future__ import annotations

import os
import time

from ringcast.lab.measuring.rows import Row, figure
from ringcast.lab.testbed import affinity


class Disturbance:
    """Counts from its creation. Child processes count as our own once they have ended and been waited for."""

    def __init__(self) -> None:
        self._started, self._own = time.monotonic(), _own_s()
        self._busy, self._stolen = affinity.busy_s()

    def rows(self, when: str = "during the run") -> list[Row]:
        seconds, own = time.monotonic() - self._started, _own_s() - self._own
        busy, stolen = affinity.busy_s()
        shares = {
            "CPU used by other programs": busy - self._busy - own,
            "time the hypervisor gave to other machines": stolen - self._stolen,
        }
        return [figure(f"{when}, {what}", max(0.0, 100 * s / seconds), "% of a core") for what, s in shares.items()]


def _own_s() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system
