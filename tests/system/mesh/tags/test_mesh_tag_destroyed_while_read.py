"""A tag is destroyed on one node while another node reads it: who reads is told, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S


def test_the_reader_is_told_and_the_channel_ends(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    publisher = a.session.publisher("shared")
    subscriber = b.session.subscribe("shared")
    publisher.wait_for_subscribers(1, PATIENCE_S)
    # From its first channel on, a daemon is a client of its own: it publishes its counters.
    eventually(lambda: [row for row in b.session.tags("@ringcast/b/channels") if row.sent])
    a.session.tag("shared", create=False).destroy(force=True)
    with pytest.raises(ringcast.TagDestroyed):
        subscriber.recv(PATIENCE_S)
    for session in (a.session, b.session):
        eventually(lambda session=session: not [row for row in session.channels() if row.tag == "shared"])
        assert session.status().mistakes == 0
