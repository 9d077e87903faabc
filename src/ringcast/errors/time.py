"""What can be wrong with clocks. Pure."""

from __future__ import annotations

from ringcast.errors.base import RingcastError


class ClocksDisagree(RingcastError):
    """All nodes are said to have a common clock source (clock.source), and probes prove that one has not."""

    def __init__(self, node: str, text: str) -> None:
        self.node = node
        self.text = text
        super().__init__(text)
