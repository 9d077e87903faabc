"""Paper 002's test on a real network of namespaces: values arrive with their pattern and stamps, and a bridge that
listens to IGMP keeps what a node did not select from its link."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_fakes import CountedSteps, named

from ringcast.lab.labmap import snooping
from ringcast.lab.labmap.field import LabMapNetwork, Setting
from ringcast.lab.testbed.network import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@pytest.fixture(scope="module")
def bed() -> Iterator[LabMapNetwork]:
    with LabMapNetwork(3) as made:
        made.start(made.mesh.names)
        yield made


def test_a_drive_counts_every_change_and_stamps_its_way(bed: LabMapNetwork) -> None:
    drive = bed.drive(Setting(200, 0.01, subscribers=2), cycles=10)
    assert drive.sent["changes"] == 2000
    assert [heard["wrong"] for heard in drive.heard] == [0, 0]
    for heard in drive.heard:
        assert heard["values"] >= 2000
        names = ("change_to_send_us", "send_to_kernel_us", "kernel_to_mirror_us", "mirror_to_hand_us")
        parts = [heard[name] for name in names]
        assert all(part is not None and part >= 0 for part in parts)
    assert drive.packets > 0


def test_a_bridge_with_igmp_snooping_filters(bed: LabMapNetwork) -> None:
    found = snooping.filtered(bed, True, CountedSteps())
    assert named(found, "bytes at a node that joined none").met
