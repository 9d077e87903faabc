"""Daemons behind routers find out how many hops lie between them, over IPv4 and IPv6, and how fast their wires are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.scripts import FAMILIES
from ringcast.lab.testbed.topology import chain
from ringcast.placement.mesh.live import live

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


def ways(session: Any) -> dict[tuple[str, str], int]:
    reports = session.observe().reports
    return {(report.node, way.node): way.hops for report in reports for way in report.ways}


def test_a_row_of_four() -> None:
    with Testbed(chain(4)) as bed, MeshNodes(bed, "abcd") as mesh:
        expected = {(a, b): ord(b) - ord(a) for a in "abcd" for b in "abcd" if a < b}
        mesh.wait(lambda: ways(mesh.sessions["c"]) == expected, "the hops were not counted")
        found = mesh.sessions["a"].observe()
        assert all(way.bandwidth > 0 for report in found.reports for way in report.ways)  # a veth says 10 Gbit/s
        problem = live(found, lambda _: True, undecided=lambda _: False).case.problem
        assert {(link.a, link.b) for link in problem.links} == {("a", "b"), ("b", "c"), ("c", "d")}


@pytest.mark.skipif(6 not in FAMILIES, reason="this kernel has no IPv6")
def test_hosts_of_ipv6_with_a_router_between(make_mesh: Any, eventually: Callable[..., None]) -> None:
    with Testbed(chain(3)) as bed:
        a, _ = make_mesh.in_lab(bed, family=6)
        eventually(lambda: ways(a.session) == {("a", "c"): 2})
