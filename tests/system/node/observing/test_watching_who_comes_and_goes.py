"""An application watches publishers, subscribers and nodes: by iterating, in asyncio, by callback."""

from __future__ import annotations

import asyncio
import os
import queue
import select
from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S


def told(watch: ringcast.Watch, number: int) -> list[str]:
    rows = [watch.recv(PATIENCE_S) for _ in range(number)]
    return [f"{row.kind} {row.topic or row.node} {'came' if row.came else 'went'}" for row in rows]


def test_on_one_node_without_a_network(session: ringcast.Session, connect: Callable[[], ringcast.Session]) -> None:
    other = connect()
    with session.watch() as watch:
        assert told(watch, 1) == [f"node {session.node} came"]
        pub = other.publisher("lab/temp")
        assert told(watch, 1) == ["publisher lab/temp came"]
        sub = other.subscribe("lab/*")
        assert told(watch, 1) == ["subscriber lab/* came"]
        assert {row.topic for row in watch.present} == {"", "lab/temp", "lab/*"}
        pub.send(b"x")
        pub.close()
        sub.close()
        assert told(watch, 2) == ["publisher lab/temp went", "subscriber lab/* went"]
        with pytest.raises(ringcast.WouldBlock):
            watch.recv_nowait()
        with pytest.raises(TimeoutError):
            watch.recv(timeout=0)


def test_a_program_that_is_killed_went(session: ringcast.Session, program: Callable[[str], Any]) -> None:
    tag = session.tag("lab/temp")
    watch = tag.watch()
    other = program("import ringcast; p = ringcast.connect().publisher('lab/temp'); print('up'); input()")
    assert told(watch, 1) == ["publisher lab/temp came"]
    assert [row.publisher.pid for row in watch.present if row.publisher] == [other.pid]
    other.kill()
    assert told(watch, 1) == ["publisher lab/temp went"]


def test_in_asyncio(session: ringcast.Session) -> None:
    async def run() -> list[str]:
        found = []
        with session.tag("a").watch() as watch:
            waiting = asyncio.create_task(watch.recv_async(PATIENCE_S))
            await asyncio.sleep(0)
            pub = await asyncio.to_thread(session.publisher, "a")
            found.append(str((await waiting).came))
            pub.close()
            async for presence in watch:
                found.append(str(presence.came))
                break
            with pytest.raises(TimeoutError):
                await watch.recv_async(timeout=0.001)
        with pytest.raises(ringcast.ClosedError):
            await watch.recv_async()
        return found

    assert asyncio.run(run()) == ["True", "False"]


def test_by_callback_and_by_descriptor(session: ringcast.Session) -> None:
    seen: queue.Queue[bool] = queue.Queue()
    errors: queue.Queue[str] = queue.Queue()

    def noticed(presence: ringcast.Presence) -> None:
        seen.put(presence.came)
        raise RuntimeError("an application's mistake")

    watch, beside = session.tag("a").watch(), session.tag("a").watch()
    service = watch.on_change(noticed, on_error=lambda error, presence: errors.put(str(presence.came)))
    pub = session.publisher("a")
    assert seen.get(timeout=PATIENCE_S) is True
    pub.close()
    assert seen.get(timeout=PATIENCE_S) is False
    assert [errors.get(timeout=PATIENCE_S), errors.get(timeout=PATIENCE_S)] == ["True", "False"]
    service.close()
    assert not service.running
    assert not watch.closed
    for _ in range(2):
        assert select.select([beside.fileno()], [], [], PATIENCE_S)[0]
        beside.recv_nowait()
    assert not select.select([beside.fileno()], [], [], 0)[0]


def test_who_went_while_the_daemon_was_away_is_told_by_the_next(
    daemon: Any, session: ringcast.Session, program: Callable[[str], Any]
) -> None:
    pub = session.publisher("stays")
    watch = session.watch(kinds=["publisher"])
    other = program("import ringcast; p = ringcast.connect().publisher('goes'); input()")
    assert told(watch, 2) == ["publisher stays came", "publisher goes came"]
    daemon.kill()
    other.kill()
    daemon.start()
    assert told(watch, 1) == ["publisher goes went"]
    assert [row.topic for row in watch.present] == ["stays"]
    pub.close()


def test_who_stayed_while_the_daemon_was_restarted_neither_came_nor_went(
    daemon: Any, session: ringcast.Session, eventually: Callable[..., None]
) -> None:
    gone = session.publisher("goes")
    pub, sub = session.publisher("stays"), session.subscribe("stays")
    watch = session.watch(kinds=["publisher", "subscriber"])
    assert told(watch, 3) == ["publisher goes came", "publisher stays came", "subscriber stays came"]
    gone.close()
    assert told(watch, 1) == ["publisher goes went"]
    daemon.kill()
    daemon.start()
    eventually(lambda: session.connected)
    late = session.publisher("late")
    assert told(watch, 1) == ["publisher late came"]
    assert sorted(row.topic for row in watch.present) == ["late", "stays", "stays"]
    late.close()
    pub.close()
    sub.close()
    assert told(watch, 3) == ["publisher late went", "publisher stays went", "subscriber stays went"]


def test_across_nodes_and_when_a_node_dies(make_mesh: Any) -> None:
    a, b = make_mesh(2)
    watch = a.session.watch()
    assert sorted(told(watch, 2)) == ["node a came", "node b came"]
    pub = b.session.publisher("far")
    assert told(watch, 1) == ["publisher far came"]
    b.kill()
    assert sorted(told(watch, 2)) == ["node b went", "publisher far went"]
    pub.close()


def test_a_closed_watch_ends_its_loops(session: ringcast.Session, eventually: Callable[..., None]) -> None:
    watch = session.watch(kinds=["publisher"])
    service = watch.on_change(print)
    watch.close()
    eventually(lambda: not service.running)
    assert list(watch) == []
    with pytest.raises(ringcast.ClosedError):
        watch.recv()


def test_a_forked_child_is_told_so(session: ringcast.Session) -> None:
    watch = session.watch()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            watch.recv_nowait()
        except ringcast.ForkedError:
            os.write(writer, b"f")
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 1) == b"f"
    os.close(reader)
    os.waitpid(pid, 0)


def test_kinds_are_checked(session: ringcast.Session) -> None:
    with pytest.raises(ValueError, match="kinds are some of"):
        session.watch(kinds=["tag"])  # type: ignore[list-item]
