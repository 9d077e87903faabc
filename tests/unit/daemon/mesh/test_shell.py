"""Nodes on real sockets find each other and tell each other, by address and by multicast."""

from __future__ import annotations

import pytest
from mesh_town import Node, Town, echo, looped, village

from ringcast.daemon.mesh.core.events import NameCleared, NameConflict
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.table.table import TagTable
from ringcast.model import addresses
from ringcast.testing.waiting import PATIENCE_S


@looped
async def test_ten_nodes_agree_after_a_change_and_notice_one_that_is_killed_and_returns() -> None:
    async with Town() as town:
        nodes = await village(town, 10)
        nodes[3].publish(1)
        row, changes = nodes[3].table.open_tag("lab/temp", {"depth": 16})
        nodes[3].mesh.changed(changes)
        await town.until(lambda: all(node.publishers() == [("n3", 1)] and node.table.tags() for node in nodes))
        await nodes[3].mesh.abort()
        rest = [node for node in nodes if node.name != "n3"]
        await town.until(lambda: all("n3" not in node.others() and not node.publishers() for node in rest))
        await town.until(lambda: len({_primary(node, row.name) for node in rest} | {"n3"}) == 2)
        again = await town.node("n3", host="127.0.0.4", seed=nodes[0])
        again.publish(2)
        await town.until(lambda: all(node.publishers() == [("n3", 2)] for node in [*rest, again]))
        gone = [(row.state, row.name) for row in nodes[0].mesh.nodes() if row.state == "gone"]
        assert gone == [("gone", "n3")]
        went = [p for told in nodes[0].told if isinstance(told, list) for p in told if getattr(p, "kind", "") == "node"]
        assert [(p.node, p.came) for p in went if p.node == "n3"] == [("n3", True), ("n3", False), ("n3", True)]


def _primary(node: Node, tag: str) -> str:
    row = node.table.tag(tag)
    return row.primary if row else "n3"


@looped
async def test_of_two_with_one_name_the_younger_is_told_and_takes_over_later() -> None:
    async with Town() as town:
        first = await town.node("cam")
        other = await town.node("hub", seed=first)
        await town.until(lambda: other.others() == {"cam"})
        second = await town.node("cam", seed=other)
        await town.until(lambda: any(isinstance(told, NameConflict) and told.mine for told in second.told))
        assert not second.mesh.serving
        assert first.mesh.serving
        second.publish(2)
        first.publish(1)
        await town.until(lambda: other.publishers() == [("cam", 1)])
        expected = {first.mesh.me.incarnation: "here", second.mesh.me.incarnation: "conflict"}
        await town.until(
            lambda: {row.incarnation: row.state for row in other.mesh.nodes() if row.name == "cam"} == expected
        )
        await first.mesh.close()
        await town.until(lambda: any(isinstance(told, NameCleared) for told in second.told))
        await town.until(lambda: other.publishers() == [("cam", 2)])


@looped
async def test_nodes_that_listen_everywhere_learn_their_addresses_also_ipv6() -> None:
    async with Town() as town:
        first = await town.node("a", listen=("0.0.0.0:0", "[::1]:0"))
        six = await town.node("b", listen=("[::1]:0",), peers=(first.address,))
        four = await town.node("c", listen=("0.0.0.0:0",), seed=six)
        await town.until(lambda: all(len(node.others()) == 2 for node in town.nodes))
        four.mesh.announce(("127.0.0.1:5",))
        first.mesh.serve("hello", echo)
        assert await four.mesh.request("a", "hello", b"x", PATIENCE_S) == b"x"
        record = first.mesh.node("c")
        assert record is not None
        assert record.data == ("127.0.0.1:5",)


@pytest.mark.parametrize("address", ["", "a b:1", "[::1", "host:port", "a:1:2:x", ":5", "h:70000", "[::1]:x", "[h]x"])
@looped
async def test_addresses_are_checked_when_given(address: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Mesh(TagTable("a", 1), on_changes=lambda changes: None, listen=(address,))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("h", "h", 9), ("h:1", "h", 1), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:5", "::1", 5), ("[::1]", "::1", 9),
        ("::1", "::1", 9), ("[fe80::1%eth0]:5", "fe80::1%eth0", 5),
    ],
)  # fmt: skip
def test_addresses(text: str, host: str, port: int) -> None:
    assert addresses.split(text, 9) == (host, port)
    assert addresses.split(addresses.join(host, port)) == (host, port)
