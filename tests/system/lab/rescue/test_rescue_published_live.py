"""A mission goes out on tags, and what a subscriber receives is what the sensors saw."""

from __future__ import annotations

import threading

import numpy as np

import ringcast
from ringcast.rescue import Mission, Settings
from ringcast.rescue.live import publish


def test_frames_and_fixes_arrive_with_the_sensors_own_times(session: ringcast.Session) -> None:
    skew = 3_600_000_000_000
    mission = Mission(Settings(seconds=0.3, uavs=1, cameras=1, skew_ns={"uav0": skew}))
    with session.subscribe("**") as everything:
        sent = publish(mission, session, pace=10.0)
        received = [everything.recv(timeout=30) for _ in range(sum(sent.values()))]
    assert sent == {"uav/0/ir": 3, "uav/0/pose": 15, "uav/0/gps": 3, "street/0/video": 7}
    images = [m.data for m in received if m.tag == "uav/0/ir"]
    assert np.array_equal(images[0], next(m.value for m in mission.messages() if m.tag == "uav/0/ir"))
    ahead = {m.tag: m.event_ns - m.sent_ns for m in received}
    assert ahead["uav/0/gps"] > skew // 2
    assert ahead["uav/0/ir"] < skew // 2


def test_a_node_sends_its_own_and_stops_when_told(session: ringcast.Session) -> None:
    mission = Mission(Settings(seconds=0.2, uavs=1, cameras=1))
    assert publish(mission, session, mine=lambda node: node == "street0", pace=100.0) == {"street/0/video": 5}
    stopped = threading.Event()
    stopped.set()
    assert publish(mission, session, stop=stopped) == {}
