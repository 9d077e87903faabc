"""What `ringcast doctor` says of the network, for networks of all kinds."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from ringcast.cli.parts.checks import network
from ringcast.cli.parts.checks.finding import Finding

Look = Callable[[dict[str, str]], Finding]


@pytest.fixture
def multicast(monkeypatch: pytest.MonkeyPatch) -> Look:
    """The finding for interfaces of which some are deaf, and why."""

    def look(reasons: dict[str, str]) -> Finding:
        monkeypatch.setattr(network, "interfaces", lambda: list(reasons))
        monkeypatch.setattr(network, "hears_itself", reasons.__getitem__)
        return network._multicast()

    return look


def test_multicast_on_every_interface(multicast: Look) -> None:
    assert multicast({"eth0": "", "eth1": ""}).state == "ok"


def test_multicast_on_some(multicast: Look) -> None:
    found = multicast({"eth0": "", "wlan0": "nothing is heard"})
    assert found.state == "limited"
    assert "works on eth0; wlan0: nothing is heard" in found.value
    assert "--peer" in found.remedy


@pytest.mark.parametrize("reasons", [{"eth0": "network is unreachable"}, {}])
def test_multicast_nowhere_says_that_static_peers_suffice(multicast: Look, reasons: dict[str, str]) -> None:
    found = multicast(reasons)
    assert found.state == "limited"
    assert "--peer HOST:PORT, one is enough" in found.remedy


def test_an_interface_that_is_not_there() -> None:
    assert network.hears_itself("no-such-one") != ""


def test_segmentation_is_tried_and_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert network._segmentation().state in ("ok", "limited")

    def refuse(self: socket.socket, *_: object) -> None:
        raise OSError(92, "Protocol not available")

    monkeypatch.setattr(socket.socket, "setsockopt", refuse)
    assert network._segmentation().state == "limited"
    assert network._coalescing().state == "limited"
