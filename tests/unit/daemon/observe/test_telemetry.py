"""A daemon goes on publishing its counters, whatever becomes of the tag."""

from __future__ import annotations

import asyncio

from ringcast import _core
from ringcast.control.status import ChannelStatus
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.observe.telemetry import Telemetry
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.table.system_tags import ATTRIBUTES, channels_tag
from ringcast.daemon.table.table import TagTable

TAG = channels_tag("n1")
ROW = ChannelStatus(
    direction="in", node="b", tag="t", incarnation=1, transport="udp", every=1, reliable=False, messages=1, bytes=1,
    lost=0, counters={},
)  # fmt: skip


def make(budget_bytes: int) -> tuple[Local, Telemetry]:
    local = Local(TagTable("n1", 1), Budget(budget_bytes, max_lingering=10), _core)
    telemetry = Telemetry(local, lambda: [ROW], dict, lambda out: None, lambda: None, Background())
    return local, telemetry


def sent(local: Local) -> list[int]:
    return [ring.monitor.counters()["sent"] for ring in local.rings.matching(TAG)]


def test_it_comes_back_when_its_tag_is_gone() -> None:
    async def body() -> None:
        local, telemetry = make(1 << 30)
        await telemetry.publish()
        assert sent(local) == [1]
        local.tags.destroy(TAG, "n1", [], force=True)
        assert sent(local) == []
        await telemetry.publish()
        await telemetry.publish()
        assert sent(local) == [2]
        telemetry.close()
        local.close()

    asyncio.run(body())


def test_it_is_tried_again_when_there_was_no_room() -> None:
    async def body() -> None:
        local, telemetry = make(1000)
        await telemetry.publish()
        assert sent(local) == []
        local.budget.limit(4 * ATTRIBUTES.capacity_bytes, max_lingering=10, max_lingering_per_tag=10)
        await telemetry.publish()
        assert sent(local) == [1]
        telemetry.close()
        local.close()

    asyncio.run(body())
