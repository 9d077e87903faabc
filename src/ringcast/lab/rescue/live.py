"""A mission on tags, as it happens: every message at its moment, by whoever plays the node it comes from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ringcast.lab.rescue.mission import Mission
from ringcast.publisher import Publisher
from ringcast.session import Session

RING_BYTES = 16 * 1024 * 1024
RING_DEPTH = 8192
"""Two minutes and more of the fastest stream, for whoever pulls late."""


def publish(
    mission: Mission,
    session: Session,
    mine: Callable[[str], bool] = lambda node: True,
    stop: threading.Event | None = None,
    pace: float = 1.0,
    begin_ns: int | None = None,
) -> dict[str, int]:
    """Send what the nodes send that `mine` selects, from `begin_ns` on (by default: now); returns how many messages
    each tag got. Several processes that are told the same `begin_ns` are in the same world at the same moment.

    Event times are this moment's by the sensor's clock, which is ahead by what the settings say. `pace` 2 is twice as
    fast. Raises what `Publisher.send` does.
    """
    ended = stop or threading.Event()
    publishers: dict[str, Publisher] = {}
    sent: dict[str, int] = {}
    begin = time.time_ns() if begin_ns is None else begin_ns
    for message in mission.messages(mine):
        due = begin + round(message.at_ns / pace)
        if ended.wait(max(0.0, (due - time.time_ns()) / 1e9)):
            break
        publisher = publishers.get(message.tag)
        if publisher is None:
            publisher = session.publisher(message.tag, codec=message.codec, depth=RING_DEPTH, capacity_bytes=RING_BYTES)
            publishers[message.tag] = publisher
        publisher.send(message.value, event_ns=due + mission.settings.skew_of(message.node))
        sent[message.tag] = sent.get(message.tag, 0) + 1
    return sent
