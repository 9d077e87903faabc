"""Nothing grows: references, objects, descriptors, mappings."""

import gc
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringcast import _core


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_a_hundred_thousand_messages_leave_nothing_behind(ring: Any) -> None:
    decoded = object()
    reader = ring.reader(decode=lambda data: decoded)
    history = ring.history(decode=lambda data: decoded)

    def exchange(n: int) -> None:
        for _ in range(n):
            ring.send(b"x" * 100)
            reader.recv()
            history.latest()
            ring.writer.send_many([b"y", bytearray(b"z")])
            reader.recv_many(2)
            history.range(0, 2**63)
            with ring.writer.reserve(10) as room:
                room[0] = 1
            bytes(reader.recv(copy=False).data) if False else reader.recv(copy=False)

    exchange(500)
    gc.collect()
    references, memory = sys.getrefcount(decoded), resident_kib()
    exchange(25_000)
    gc.collect()
    assert sys.getrefcount(decoded) == references
    assert resident_kib() - memory < 2048


def test_errors_leave_nothing_behind(ring: Any) -> None:
    reader = ring.reader()
    data = bytearray(b"x")
    outcomes: list[Callable[[], object]] = [
        lambda: ring.send(5), lambda: ring.send(b"x" * 5000), lambda: ring.send(data, event_ns="x"),
        lambda: ring.writer.send_many([data, 5]), reader.recv_nowait, lambda: reader.recv(timeout=0),
        lambda: reader.recv(timeout="x"), lambda: ring.history().at(10**9), lambda: ring.reader(start=-9),
    ]  # fmt: skip

    def fail(n: int) -> None:
        for i in range(n):
            with pytest.raises(Exception, match=r"."):
                outcomes[i % len(outcomes)]()
            if i % len(outcomes) == 3:
                reader.recv()

    fail(900)
    gc.collect()
    memory, objects = resident_kib(), len(gc.get_objects())
    fail(9_000)
    gc.collect()
    assert resident_kib() - memory < 4096
    assert len(gc.get_objects()) - objects < 500
    data.clear()


def test_rings_that_come_and_go_give_back_descriptors_and_mappings(make_ring: Any) -> None:
    reader = _core.RingReader()

    def come_and_go(n: int) -> None:
        for _ in range(n):
            ring = make_ring()
            ring.attach(reader)
            ring.send(b"x")
            reader.recv()
            reader.detach(ring.writer.incarnation)
            with pytest.raises(TimeoutError):
                reader.recv(timeout=0)
            ring.history()
            ring.monitor().close()
            bridge = _core.Bridge()
            ring.reader(reliable=True).use_bridge(bridge)
            bridge.close()

    def held() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(Path("/proc/self/maps").read_text().splitlines())

    come_and_go(20)
    before = held()
    come_and_go(200)
    after = held()
    assert after[0] == before[0]
    assert after[1] - before[1] < 10  # the allocator's own


class Loop:
    """Holds what holds it."""

    native: Any

    def __call__(self, data: bytes) -> bytes:
        return data


@pytest.mark.parametrize("kind", ["encode", "decode", "history", "failure", "publisher"])
def test_cycles_through_native_objects_are_collected(ring: Any, kind: str) -> None:
    loop = Loop()
    gone = weakref.ref(loop)
    if kind == "encode":
        loop.native = _core.RingWriter(depth=1, capacity_bytes=1, encode=loop)
    elif kind == "history":
        loop.native = ring.history(decode=loop)
    elif kind == "failure":
        loop.native = ring.reader()
        error = KeyError("x")
        error.loop = loop  # type: ignore[attr-defined]
        loop.native.fail(error)
        del error
    elif kind == "publisher":
        loop.native = ring.attach(_core.RingReader(), publisher=loop)
    else:
        loop.native = ring.reader(decode=loop)
        ring.send(b"x")
        loop.native.recv()
    del loop
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_subclass_that_forgot_its_base_is_an_error_not_a_crash() -> None:
    for kind in (_core.RingWriter, _core.RingReader, _core.RingHistory):
        forgetful = type("Forgetful", (kind,), {"__init__": lambda self: None})()
        with pytest.raises((TypeError, RuntimeError)):
            forgetful.close()
        del forgetful
        gc.collect()


def test_what_is_alive_at_exit_is_no_trouble(run_program: Callable[..., Any]) -> None:
    program = run_program(
        """
        from ringcast import _core
        GEOMETRY = {"depth": 4, "capacity_bytes": 4096}
        writer = _core.RingWriter(**GEOMETRY)
        reader = _core.RingReader(reliable=True)
        reader.attach(writer.ring_fd, writer.bell_fd, **GEOMETRY, incarnation=writer.incarnation)
        bridge = _core.Bridge()
        reader.use_bridge(bridge)
        writer.send(b"x")
        message = reader.recv(copy=False)
        reservation = writer.reserve(4)
        view = memoryview(reservation)
        class Late:
            def __del__(self):
                message.valid
        late = Late()
        print("end")
        """,
        "unused",
    )
    assert program.end() == "end\n"
