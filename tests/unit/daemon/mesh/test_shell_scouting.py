"""Nodes that find each other by multicast, and what the shell does with rows and actions."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from mesh_town import Node, Town, looped

from ringcast.control.peering import (
    Scout,
    encode_scout,
)
from ringcast.daemon.mesh.scouting import Scouting, ScoutSettings


def _multicast_works(group: str) -> bool:
    """Asked with sockets of our own, or a broken scouting would excuse itself."""
    everywhere = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        try:
            ear.bind(("", 0))
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, everywhere)
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            ear.settimeout(2)
            ear.sendto(b"anybody?", (group, ear.getsockname()[1]))
            return ear.recv(64) == b"anybody?"
        except OSError:
            return False


@looped
async def test_nodes_find_each_other_by_multicast_where_there_is_any() -> None:
    async with Town() as town:
        settings = ScoutSettings(groups=("239.255.74.17",), port=17418, interface="lo")
        a = await town.node("a", scouting=settings)
        b = await town.node("b", scouting=settings)
        heard = [node.mesh.status().scouting[0] for node in (a, b)]
        if not _multicast_works(settings.groups[0]):
            pytest.skip("multicast on the loopback interface does not work on this machine")
        await town.until(lambda: a.others() == {"b"} and b.others() == {"a"})
        while any(status.works is None for status in heard):
            await asyncio.sleep(0.05)
        assert all(status.works for status in heard)


@looped
async def test_where_multicast_is_impossible_the_reason_is_kept() -> None:
    async with Town() as town:
        settings = ScoutSettings(groups=("239.255.74.17", "ff02::7417"), port=17418, interface="nothing0")
        a = await town.node("a", scouting=settings)
        (status,) = a.mesh.status().scouting
        assert status.works is False
        assert "nothing0" in status.error


@looped
async def test_what_is_heard_is_counted_and_checked(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[str, int]] = []
    scouting = Scouting(
        ScoutSettings(groups=("239.255.74.17",), interface="nothing0"), mesh="lab", incarnation=5,
        listening=[("127.0.0.1", 4)], on_heard=lambda *call: heard.append(call),
    )  # fmt: skip
    await scouting.start()
    (status,) = scouting.status()
    for scout in (
        Scout(incarnation=5, port=4, mesh="lab"), Scout(incarnation=6, port=7, mesh="lab"),
        Scout(incarnation=6, port=7, mesh="lab", host="10.0.0.9"), Scout(incarnation=6, port=7, mesh="other"),
        Scout(incarnation=6, port=7, mesh="lab", version=1), Scout(incarnation=6, port=7, mesh="lab", version=1),
    ):  # fmt: skip
        scouting._sockets[0].datagram_received(encode_scout(scout), ("10.0.0.1", 99))
    scouting._sockets[0].datagram_received(b"noise", ("10.0.0.1", 99))
    scouting.close()
    assert heard == [("10.0.0.1:7", 6), ("10.0.0.9:7", 6)]
    assert (status.heard_self, status.heard_others, status.bad, status.foreign) == (1, 2, 3, 1)
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "a node at 10.0.0.1 speaks peering protocol 1 and this one 2"
    ]


@looped
async def test_rows_that_were_there_before_the_start_are_told_and_tags_get_a_backup() -> None:
    async with Town() as town:
        a = await town.node("a")
        b = Node(town, "b", ("127.0.0.2:0",), (a.address,))
        town.nodes.append(b)
        b.publish(1)
        b.mesh.changed(b.table.open_tag("lab/temp", {})[1])
        await b.mesh.start()
        await town.until(lambda: a.publishers() == [("b", 1)] and [row.backup for row in a.table.tags()] == ["a"])


@looped
async def test_one_action_that_fails_costs_the_others_nothing() -> None:
    async with Town() as town:
        a = await town.node("a")

        def fail(changes: Any) -> None:
            raise KeyError("a mistake of ours")

        b = Node(town, "b", ("127.0.0.2:0",), (a.address,))
        b.mesh._on_changes = fail
        town.nodes.append(b)
        await b.mesh.start()
        a.publish(1)
        await town.until(lambda: bool(b.mesh.mistakes) and any(isinstance(what, list) for what in b.told))
        assert b.others() == {"a"}, "the link by which it came is as good as before"
        assert b.publishers() == [("a", 1)]
