"""A task set runs with real-time priorities by its deadlines: everything comes, and messages are measured."""

from __future__ import annotations

import os

import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import Costs
from ringcast.lab.bounds.running import Runner
from ringcast.lab.bounds.task_sets import task_set


def test_every_message_of_a_task_set_comes():
    if os.geteuid():
        pytest.skip("needs root for real-time priorities")
    system = task_set(10, 2, Calibration(Machine("", 2, "", ""), Costs(), 0.0, "", realtime=True))
    with Runner() as runner:
        for _ in range(2):  # the processes are used again
            measured = runner.run(system, 0.3)
            assert [one.tag for one in measured] == [stream.tag for stream in system.streams]
            for one, stream in zip(measured, system.streams, strict=True):
                assert one.missing == 0
                least = stream.compute_s + stream.subscribers[0].compute_s
                assert all(message.delay >= least * 1e9 for message in one.messages)
