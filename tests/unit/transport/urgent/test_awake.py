import struct

import pytest

from ringcast import _core
from ringcast.transport.urgent import urgency
from ringcast.transport.urgent.awake import ANY_US, SHALLOW_US, Awake
from ringcast.transport.urgent.urgency import Urgency


@pytest.fixture
def awake(tmp_path):
    """With a file in place of the kernel's device: it keeps what was written."""
    device, driver = tmp_path / "cpu_dma_latency", tmp_path / "current_driver"
    device.write_bytes(b"")
    driver.write_text("haltpoll\n")
    return Awake(device, driver)


def written(awake):
    return struct.unpack("=i", awake._device.read_bytes())[0]


def test_a_request_is_there_while_somebody_holds_it(awake):
    assert awake.in_force() is None
    awake.hold()
    awake.hold()
    assert (awake.in_force(), written(awake)) == (0, 0)
    awake.release()
    assert awake.in_force() == 0
    awake.release()
    assert awake.in_force() is None


def test_a_processor_of_its_own_may_sleep_lightly(awake):
    awake._driver.write_text("intel_idle\n")
    awake.hold()
    assert awake.in_force() == SHALLOW_US
    awake.release()
    awake._driver.unlink()
    assert awake.usual_us() == SHALLOW_US


def test_an_administrator_says_how_late_cores_may_wake(awake):
    awake.latency_us = 20
    awake.hold()
    assert awake.in_force() == 20
    awake.release()
    awake.latency_us = ANY_US
    awake.hold()
    assert awake.in_force() is None
    assert awake.refused == ""


def test_where_it_is_not_permitted_it_is_said_and_nothing_fails(awake):
    awake._device.unlink()
    awake.hold()
    assert awake.in_force() is None
    assert "No such file" in awake.refused
    awake.release()


def test_a_channel_with_a_schedule_holds_cores_awake_until_it_is_closed(awake, monkeypatch):
    monkeypatch.setattr(urgency, "AWAKE", awake)
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: None)
    plain, normal, urgent = Urgency("high"), Urgency("other"), Urgency("fifo:3")
    for one in (plain, normal):
        one.schedule(7)
        assert one.in_force(None, 0, own=True).wake_us is None
    urgent.schedule(7)
    urgent.schedule(8)
    assert urgent.in_force(None, 0, own=True).wake_us == 0
    urgent.close()
    urgent.close()
    assert awake.in_force() is None
