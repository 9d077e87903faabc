"""The five media of a conference: their tags, what each asks of the network, and which counts first. Pure.

One tag a medium (paper 000, section 4.1), so that everybody chooses for each whether to publish and to subscribe.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ringcast.model.priority import CRITICAL, HIGH, LOW, NORMAL
from ringcast.model.tag import check_name

ROOT = "conference"


class Medium(NamedTuple):
    """`quality` is what it asks of the network (paper 001, section 1.1): low delay, a rate, or that nothing is lost."""

    name: str
    quality: str
    reliable: bool
    attributes: dict[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """Those of its tag: its place in the order is the class of its channels between nodes."""
        return {**self.attributes, "priority": URGENCIES[MEDIA.index(self)]}


URGENCIES = (CRITICAL, HIGH, NORMAL, LOW, LOW)
"""Classes of channels, for media in the order of their importance."""

# In the order of section 4.2, the most important first. Figure 10 puts the control thread above audio; people hear a
# late word sooner than they see a late shot.
MEDIA = (
    Medium("audio", "delay", False, {"codec": "bytes", "depth": 256, "capacity_bytes": 256 * 1100}),
    Medium("control", "delay", False, {"codec": "bytes", "depth": 512, "capacity_bytes": 512 * 512}),
    Medium("video", "rate", False, {"codec": "image", "depth": 16, "capacity_bytes": 4 << 20}),
    Medium("whiteboard", "reliable", True, {"codec": "bytes", "depth": 4096, "capacity_bytes": 4 << 20}),
    Medium("chat", "reliable", True, {"codec": "bytes", "depth": 1024, "capacity_bytes": 1 << 20}),
)


def tag_name(conference: str, medium: str) -> str:
    """Raises BadTagName."""
    return check_name(f"{ROOT}/{conference}/{medium}")
