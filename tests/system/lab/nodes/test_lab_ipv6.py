"""Nothing but IPv6 between two nodes, from the control links to the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.scripts import FAMILIES
from ringcast.lab.testbed.topology import chain

pytestmark = [
    pytest.mark.skipif(unavailable() is not None, reason=unavailable() or ""),
    pytest.mark.skipif(6 not in FAMILIES, reason="this kernel has no IPv6"),
]


def test_messages_of_all_sizes_by_both_transports(
    make_mesh: Any, eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    with Testbed(chain(3)) as bed:
        a, c = make_mesh.in_lab(bed, family=6)
        assert all(address.startswith("[") for node in a.session.nodes() for address in node.control)
        pub = a.session.publisher("six")
        eventually(lambda: c.knows("six"))
        subs = [c.session.subscribe("six", transport=name) for name in ("udp", "tcp")]
        for size in (0, 10, 2_000, 300_000):
            pub.send(bytes(size))
        pub.send(b"end")
        for sub in subs:
            got = take(sub, b"end")
            assert [len(msg.data) for msg in got] == [0, 10, 2_000, 300_000, 3]
            assert {msg.lost for msg in got} == {0}
        assert [msg.data for msg in c.session.tag("six").history().since(4)] == [b"end"]
