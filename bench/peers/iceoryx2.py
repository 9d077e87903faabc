"""iceoryx2: shared memory, loaned samples, and an event service to wake the other side.

Its Python subscriber cannot block by itself: the documented way to wait is a listener beside it, notified by the sender
after each sample. `iceoryx2` waits that way; `iceoryx2 polling` never sleeps, and is reported as such.
"""

from __future__ import annotations

import ctypes
import time
from importlib.metadata import version
from itertools import repeat
from typing import Any

import iceoryx2 as iox2
import numpy as np

from ends.interface import IDLE_S, PAYLOAD, Link, Peer, Place, Sink, Source, wait_for
from ends.room import chosen

SMALL, LARGE = 64, 1 << 20
BUFFER = {SMALL: 1024, LARGE: chosen()}
"""Samples a subscriber can have waiting, by their largest size: all of them are allocated beforehand."""
PREFIX = "rcbench_"
Bytes = iox2.Slice[ctypes.c_uint8]
iox2.set_log_level_from_env_or(iox2.LogLevel.Error)


class _Node:
    """A node whose files and shared memory are private to one place."""

    def __init__(self, place: Place) -> None:
        config = iox2.config.default()
        config.global_cfg.prefix = iox2.FileName.new(f"{PREFIX}{place.token}_")
        config.global_cfg.root_path = iox2.Path.new(str(place.folder / "iox2"))
        self.node = (
            iox2.NodeBuilder.new()
            .config(config)
            .signal_handling_mode(iox2.SignalHandlingMode.Disabled)
            .create(iox2.ServiceType.Ipc)
        )

    def samples(self, name: str, sinks: int, size: int) -> Any:
        """The publish-subscribe service.

        For one sink a full buffer holds the publisher back; for many, the oldest goes.
        """
        return (
            self.node.service_builder(iox2.ServiceName.new(name))
            .publish_subscribe(Bytes)
            .enable_safe_overflow(sinks > 1)
            .subscriber_max_buffer_size(BUFFER[size])
            .max_subscribers(max(sinks, 2))
            .max_nodes(16)
            .open_or_create()
        )

    def bell(self, name: str, sinks: int) -> Any:
        """The event service that wakes subscribers."""
        return (
            self.node.service_builder(iox2.ServiceName.new(name))
            .event()
            .max_listeners(max(sinks, 2))
            .max_nodes(16)
            .open_or_create()
        )


class _Out:
    """A publisher and its notifier."""

    def __init__(self, node: _Node, name: str, sinks: int, wakes: bool, size: int = SMALL) -> None:
        self.service = node.samples(name, sinks, size)
        self.publisher = (
            self.service.publisher_builder()
            .initial_max_slice_len(size)
            .backpressure_strategy(iox2.BackpressureStrategy.RetryUntilDelivered)
            .create()
        )
        self.bell = node.bell(name, sinks)
        self.notify = self.bell.notifier_builder().create().notify if wakes else None
        self._loan = self.publisher.loan_slice_uninit

    def put(self, data: bytes) -> None:
        """Copy `data` into a loaned sample and send it, without waking anybody."""
        sample = self._loan(len(data))
        ctypes.memmove(sample.payload_ptr, data, len(data))
        sample.assume_init().send()

    def send(self, data: bytes) -> None:
        self.put(data)
        if self.notify is not None:
            self.notify()


class _In:
    """A subscriber and its listener."""

    def __init__(self, node: _Node, name: str, sinks: int, wakes: bool, size: int = SMALL) -> None:
        self.service = node.samples(name, sinks, size)
        self.subscriber = self.service.subscriber_builder().create()
        self.bell = node.bell(name, sinks)
        self.listener = self.bell.listener_builder().create() if wakes else None
        self._receive = self.subscriber.receive
        self._idle = iox2.Duration.from_secs_f64(IDLE_S)

    def take(self) -> Any:
        """The next sample, waited for by listening, or by asking again and again."""
        receive, listener = self._receive, self.listener
        if (sample := receive()) is not None:
            return sample
        deadline = time.monotonic() + IDLE_S
        while (sample := receive()) is None:
            if listener is None:
                continue
            # A wait may end with no event at all when several were merged, so only the clock tells silence.
            if time.monotonic() > deadline:
                raise TimeoutError("silence")
            listener.timed_wait(self._idle)
        return sample

    def recv(self) -> bytes:
        sample = self.take()
        # The header's count is three times cheaper to read than building the payload's Slice for its length.
        return ctypes.string_at(sample.payload_ptr, sample.header.number_of_elements)


class _Link(Link):
    def __init__(self, place: Place, side: str, waits: str) -> None:
        node = _Node(place)
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._in = _In(node, heard, 1, waits == "block")
        self._out = _Out(node, out, 1, waits == "block")
        self.send, self.recv = self._out.send, self._in.recv

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._out.service.dynamic_config.number_of_subscribers >= 1, timeout_s)
        wait_for(lambda: self._in.service.dynamic_config.number_of_publishers >= 1, timeout_s)


class _Source(Source):
    def __init__(self, place: Place, wakes: bool, fan_out: bool) -> None:
        node = _Node(place)
        self._out = _Out(node, "stream", 8 if fan_out else 1, wakes)
        self._large = None if fan_out else _Out(node, "large", 1, wakes, LARGE)
        self.send = self._out.send

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._out.service.dynamic_config.number_of_subscribers >= others, timeout_s)

    def pump_many(self, count: int, batch: int) -> None:
        # There is no call for many samples; waking once for many is the nearest there is.
        put, notify = self._out.put, self._out.notify
        for _ in repeat(None, count // batch):
            for _ in repeat(None, batch):
                put(PAYLOAD)
            if notify is not None:
                notify()

    def pump_large(self, count: int, size: int) -> None:
        assert self._large is not None
        loan, notify = self._large.publisher.loan_slice_uninit, self._large.notify
        for value in range(count):
            sample = loan(size)
            memory = (ctypes.c_uint64 * (size // 8)).from_address(sample.payload_ptr)
            np.frombuffer(memory, dtype=np.uint64).fill(value)
            sample.assume_init().send()
            if notify is not None:
                notify()


class _Sink(Sink):
    def __init__(self, place: Place, wakes: bool, fan_out: bool) -> None:
        node = _Node(place)
        self._in = _In(node, "stream", 8 if fan_out else 1, wakes)
        self._large = None if fan_out else _In(node, "large", 1, wakes, LARGE)
        self.recv = self._in.recv

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        return self.drain(count)

    def sum_large(self) -> int:
        assert self._large is not None
        sample = self._large.take()
        memory = (ctypes.c_uint64 * (sample.header.number_of_elements // 8)).from_address(sample.payload_ptr)
        return int(np.frombuffer(memory, dtype=np.uint64).sum())


class Iceoryx2(Peer):
    leftovers = (f"{PREFIX}*",)

    def __init__(self, wakes: bool) -> None:
        self._wakes = wakes
        self.name = "iceoryx2" if wakes else "iceoryx2 polling"
        # A polling sink is never waiting, so the fan-out, which is about waking, says nothing about it.
        ways = {"block", "fan-out"} if wakes else {"poll"}
        self.offers = frozenset(ways | {"stream", "batch", "large"})

    def version(self) -> str:
        return version("iceoryx2")

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _Link(place, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place, self._wakes, fan_out)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place, self._wakes, fan_out)


PEERS = [Iceoryx2(wakes=True), Iceoryx2(wakes=False)]
