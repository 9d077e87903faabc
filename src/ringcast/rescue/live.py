"""A mission on tags, as it happens: every message at its moment, by whoever plays the node it comes from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ringcast import _core
from ringcast.publisher import Publisher
from ringcast.rescue.mission import Mission
from ringcast.session import Session

RING_BYTES = 16 * 1024 * 1024
RING_DEPTH = 8192
"""Two minutes and more of the fastest stream, for whoever pulls late."""


def open_publishers(
    mission: Mission, session: Session, mine: Callable[[str], bool] = lambda node: True
) -> dict[str, Publisher]:
    """One for each tag of the nodes that `mine` selects. Raises what `Session.publisher` does."""
    return {
        tag: session.publisher(tag, codec=codec, depth=RING_DEPTH, capacity_bytes=RING_BYTES)
        for tag, codec in mission.tags(mine).items()
    }


def publish(
    mission: Mission,
    session: Session,
    mine: Callable[[str], bool] = lambda node: True,
    stop: threading.Event | None = None,
    pace: float = 1.0,
    begin_ns: int | None = None,
    publishers: dict[str, Publisher] | None = None,
) -> dict[str, int]:
    """Send what the nodes send that `mine` selects, from `begin_ns` on (by default: now); returns how many messages
    each tag got. Several processes that are told the same `begin_ns` are in the same world at the same moment.

    Event times are those of the mission, whatever the `pace` (2 sends twice as fast), by the sensor's clock: it is
    ahead by what the settings say, and by as much as this process's own is. Raises what `Publisher.send` does.
    """
    ended = stop or threading.Event()
    opened = publishers if publishers is not None else open_publishers(mission, session, mine)
    sent: dict[str, int] = {}
    begin = time.time_ns() if begin_ns is None else begin_ns
    # A sensor stamps the moment of exposure by its clock, not the one at which this program is woken.
    ahead = _core.utc_ns() - time.time_ns()
    for message in mission.messages(mine):
        due = begin + round(message.at_ns / pace)
        if ended.wait(max(0.0, (due - time.time_ns()) / 1e9)):
            break
        event_ns = begin + message.at_ns + ahead + mission.settings.skew_of(message.node)
        opened[message.tag].send(message.value, event_ns=event_ns)
        sent[message.tag] = sent.get(message.tag, 0) + 1
    return sent
