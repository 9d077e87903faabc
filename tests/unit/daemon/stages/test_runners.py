"""Who runs a stage for the daemon, when it ends at once."""

from __future__ import annotations

import asyncio
import os

import pytest

from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import StageWanted
from ringcast.control.requests import StageDown, StageUp
from ringcast.daemon.stages.runners import Declined, PublisherRunner
from ringcast.errors import BadMessage, BrokenError
from ringcast.model.tag import TagAttributes

WANTED = StageWanted(
    publisher=1, stage=2, attributes=TagAttributes(), size=(1, 1), every=1, first_seq=0, passed=0, reliable=False,
    ring=7, depth=8, capacity_bytes=4096,
)  # fmt: skip


def test_a_publishers_stage_that_ends_as_it_begins_did_not_begin() -> None:
    asyncio.run(_ends_at_once())


async def _ends_at_once() -> None:
    runner = PublisherRunner(1, 7, lambda sends: None)
    beginning = asyncio.create_task(runner.begin(WANTED, (), lambda reason: None))
    await asyncio.sleep(0)
    fds = [Descriptor(os.open("/dev/null", os.O_RDONLY)) for _ in range(3)]
    # Both answers may be read in one go, before whoever waits for the first has run.
    runner.answered(StageUp(id=1, stage=2, depth=8, capacity_bytes=4096, incarnation=9), fds)
    runner.answered(StageDown(id=2, stage=2, reason="it was interrupted"), [])
    with pytest.raises(BrokenError, match="just begun"):
        await beginning


def test_a_stage_that_was_on_its_way_when_its_publisher_left_is_no_mistake_of_the_client() -> None:
    asyncio.run(_left_while_it_began())


async def _left_while_it_began() -> None:
    runner = PublisherRunner(1, 7, lambda sends: None)
    beginning = asyncio.create_task(runner.begin(WANTED, (), lambda reason: None))
    await asyncio.sleep(0)
    runner.gone("it left")
    up = StageUp(id=1, stage=2, depth=8, capacity_bytes=4096, incarnation=9)
    runner.answered(up, [Descriptor(os.open("/dev/null", os.O_RDONLY)) for _ in range(3)])
    with pytest.raises(Declined, match="it left"):
        await beginning
    with pytest.raises(BadMessage, match="not 3"):
        runner.answered(up, [])
