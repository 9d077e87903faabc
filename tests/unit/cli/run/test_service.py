"""The unit of the machine has what priorities need, and no more than was asked for."""

from ringcast.cli.run.service import unit


def test_threads_and_sleeping_cores_but_not_the_network():
    text = unit("system", "robot", None)
    assert "AmbientCapabilities=CAP_SYS_NICE\n" in text
    assert "NET_ADMIN" not in text
    assert "DeviceAllow=/dev/cpu_dma_latency rw" in text
    assert "ExecStartPre=-+/bin/chown robot /dev/cpu_dma_latency" in text
    assert "PrivateDevices=yes" not in text  # it would hide that device


def test_links_where_they_are_asked_for():
    text = unit("system", "robot", None, bandwidth=True)
    assert "AmbientCapabilities=CAP_SYS_NICE CAP_NET_ADMIN\n" in text
    assert "CapabilityBoundingSet=CAP_SYS_NICE CAP_NET_ADMIN\n" in text


def test_a_users_own_service_has_neither():
    text = unit("user", "robot", None)
    assert "CAP_" not in text
    assert "cpu_dma_latency" not in text
