"""A stage that ends while a channel is behind it: what the channel has not got is made again. The stages are real ones,
in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import numpy as np
import pytest

from ringcast import _core
from ringcast.codec import find
from ringcast.control.descriptor import own
from ringcast.control.requests import Hello, OpenTag, Publish
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.demand import StageSpec
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.stages.runners import ProcessRunner
from ringcast.daemon.table.table import TagTable
from ringcast.testing.waiting import wait_until_async


class Publisher:
    """A client of a local manager, with a real ring of small arrays."""

    def __init__(self, local: Local) -> None:
        encode = find("numpy").bind(None).encode
        self.writer = _core.RingWriter(depth=64, capacity_bytes=65536, max_wait_s=0, encode=encode)
        local.join(1, os.getpid(), "user", Hello(id=1, program="test"), [])
        local.handle(1, OpenTag(id=1, name="t", requested={"codec": "numpy"}), [])
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fds = own(map(os.dup, (self.writer.ring_fd, self.writer.bell_fd, theirs.fileno())))
        request = Publish(
            id=2, tag="t", incarnation=self.writer.incarnation, depth=self.writer.depth,
            capacity_bytes=self.writer.capacity_bytes,
        )  # fmt: skip
        local.handle(1, request, fds)

    def close(self) -> None:
        self.writer.close()
        self._ours.close()


@pytest.mark.parametrize("passes_over", [False, True])
def test_what_a_channel_behind_has_not_got_is_made_again(passes_over: bool) -> None:
    asyncio.run(_made_again(passes_over))


async def _made_again(passes_over: bool) -> None:
    background = Background()
    local = Local(TagTable("n1", 1), Budget(1 << 30, max_lingering=10), _core)
    publisher = Publisher(local)
    gone: list[StageSpec] = []
    stages = Stages(local, lambda out: None, background, on_gone=gone.append)
    spec = StageSpec(publisher.writer.incarnation, (1, 1), here=True)
    try:
        first = await stages.hold(spec, "earliest")
        for _ in range(10):
            publisher.writer.send(np.ones((2, 2)))
        await wait_until_async(lambda: first.next_seq == 10)
        _kill(stages, spec)
        await wait_until_async(lambda: gone)
        # Somebody has all of it: the next one begins where this one ended.
        second = await stages.hold(spec, 10)
        assert second.first_seq == 10
        if passes_over:
            stages._past[spec] = 7
        # A channel that had got less when the first one ended.
        third = await stages.hold(spec, 4)
        assert third is not second
        assert third.first_seq == (7 if passes_over else 4)
        await wait_until_async(lambda: third.next_seq == 10)
        assert await stages.hold(spec, 4) is third, "and not again and again"
    finally:
        await stages.close()
        publisher.close()
        local.close()
        background.close()


def _kill(stages: Stages, spec: StageSpec) -> None:
    runner = stages.running[spec].runner
    assert isinstance(runner, ProcessRunner)
    assert runner.pid is not None
    os.kill(runner.pid, signal.SIGKILL)
