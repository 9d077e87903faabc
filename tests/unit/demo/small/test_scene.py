from __future__ import annotations

from ringcast.demo.small.actor import _PLAY
from ringcast.demo.small.roles import PUBLISHERS, STARTER, SUBSCRIBERS, TAGS
from ringcast.demo.small.scene import (
    PUBLISHER_HEADS,
    SUBSCRIBER_HEADS,
    PublisherSeen,
    Scene,
    SubscriberSeen,
    progress_line,
    publisher_cells,
    subscriber_cells,
)
from ringcast.model.tag import matches

SCENE = Scene(
    publishers={"sensor": PublisherSeen(sent=10, bytes=640, rate_hz=1000.0)},
    subscribers={
        "slow": SubscriberSeen(received=3, lost=7, rate_hz=50.0, latency_p50_ns=1000, latency_p99_ns=None),
    },
)  # fmt: skip


def test_everybody_has_a_part_and_a_tag() -> None:
    roles = (*PUBLISHERS, STARTER, *SUBSCRIBERS)
    assert {role.name for role in roles} == _PLAY.keys()
    assert all(any(matches(role.selects, tag) for tag in TAGS) for role in roles)


def test_who_has_not_begun_has_dashes() -> None:
    cells = publisher_cells(SCENE, PUBLISHERS)
    assert [len(row) for row in cells] == [len(PUBLISHER_HEADS)] * len(PUBLISHERS)
    assert cells[0][3:] == ["1.000 kHz", "10", "640 B"]
    assert cells[1][3:] == ["-", "-", "-"]


def test_loss_and_latency_have_columns() -> None:
    cells = {row[0]: row for row in subscriber_cells(SCENE, SUBSCRIBERS)}
    assert cells["slow"][3:] == ["50.00 Hz", "3", "7", "1.0 us", "-"]
    assert all(len(row) == len(SUBSCRIBER_HEADS) for row in cells.values())


def test_a_log_gets_one_line() -> None:
    line = progress_line(SCENE, 2.0)
    assert "\n" not in line
    assert "slow 7" in line


def test_the_end_is_shown_at_the_rates_of_the_play() -> None:
    rest = Scene(
        publishers={"sensor": PublisherSeen(sent=20, bytes=1280, rate_hz=0.0)},
        subscribers={"late": SubscriberSeen(received=1, lost=0, rate_hz=9.0, latency_p50_ns=1, latency_p99_ns=1)},
    )
    shown = rest.at_the_rates_of(SCENE)
    assert shown.publishers["sensor"] == PublisherSeen(sent=20, bytes=1280, rate_hz=1000.0)
    assert shown.subscribers["late"].rate_hz is None
