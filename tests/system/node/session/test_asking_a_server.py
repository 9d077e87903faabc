"""Asking and serving: answers, errors, many who ask at once, and servers that go away while they are asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ringcast
from ringcast.errors import AlreadyServed, AskFailed, DecodeError, EncodeError, NobodyServes, ServerGone

SERVER = """
    import os, threading, ringcast
    session = ringcast.connect(start=False)
    def answer(data):
        if data == "die":
            os._exit(9)
        if data == "wait":
            print("asked", flush=True)
            threading.Event().wait()
        return {"pid": os.getpid(), "said": data}
    server = session.tag("there", codec="json").serve(answer)
    print("up")
    server.wait()
"""


@pytest.fixture(params=["one node", "two nodes"])
def ends(request: pytest.FixtureRequest, make_mesh: Any, make_daemon: Any) -> Iterator[tuple[Any, Any, str]]:
    """The session that asks, the one that serves, and the serving daemon's socket."""
    if request.param == "one node":
        daemon = make_daemon()
        with ringcast.connect(daemon.socket_path, start=False) as asks, ringcast.connect(daemon.socket_path) as serves:
            yield asks, serves, daemon.socket_path
    else:
        a, b = make_mesh(2)
        yield a.session, b.session, b.daemon.socket_path


def test_answers_errors_and_nothing(ends: Any) -> None:
    asks, serves, _ = ends

    def answer(data: Any) -> Any:
        if data == "raise":
            raise KeyError("no such valve")
        if data == "odd":
            return object()
        return None if data == "nothing" else {"heard": data}

    failed: list[BaseException] = []
    with serves.tag("valve", codec="json").serve(answer, on_error=lambda error, _: failed.append(error)) as server:
        tag = asks.tag("valve", codec="json")
        for number in range(50):
            assert tag.ask(number) == {"heard": number}
        assert tag.ask("nothing") is None
        with pytest.raises(AskFailed, match="'valve' raised KeyError: 'no such valve'") as caught:
            tag.ask("raise")
        assert (caught.value.kind, caught.value.tag) == ("KeyError", "valve")
        with pytest.raises(AskFailed) as caught:
            tag.ask("odd")
        assert caught.value.kind == "EncodeError"
        with pytest.raises(EncodeError):
            tag.ask(object())
        assert tag.ask("still") == {"heard": "still"}, "nothing of that ended the server"
        assert (server.delivered, server.failed) == (52, 2)
        assert [type(error) for error in failed] == [KeyError, EncodeError]
        assert "valve" in {row.name for row in asks.tags()}
        assert not [row for row in asks.tags() if row.name.startswith("@")], "what carries it is not listed"


def test_bytes_and_arrays_are_typed_by_the_codec(ends: Any) -> None:
    import numpy as np

    asks, serves, _ = ends
    with serves.tag("double", codec="numpy").serve(lambda data: data * 2), serves.tag("raw").serve(bytes.upper):
        doubled = asks.tag("double", codec="numpy").ask(np.arange(5.0))
        assert doubled.tolist() == [0, 2, 4, 6, 8]
        assert asks.tag("raw").ask(b"abc") == b"ABC"
        long = bytes(100_000)
        assert asks.tag("raw").ask(long) == long


def test_many_ask_at_once_and_each_gets_its_own(ends: Any) -> None:
    asks, serves, _ = ends
    with serves.tag("square", codec="json").serve(lambda data: data * data):
        tags = [asks.tag("square", codec="json") for _ in range(3)]
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda number: tags[number % 3].ask(number, timeout=60), range(600)))
        assert found == [number * number for number in range(600)]


def test_who_waits_too_long_does_not_keep_others_waiting(ends: Any) -> None:
    asks, serves, _ = ends
    go = threading.Event()
    with serves.tag("slow", codec="json").serve(lambda data: go.wait() if data == "slow" else data):
        tag = asks.tag("slow", codec="json")
        tag.ask("first")
        with ThreadPoolExecutor(4) as pool:
            patient = [pool.submit(tag.ask, number, 60) for number in range(2)]
            with pytest.raises(TimeoutError, match=r"no answer from the server of 'slow' within 0\.05 s"):
                tag.ask("slow", timeout=0.05)
            patient += [pool.submit(tag.ask, number, 60) for number in range(2, 4)]
            go.set()
            assert [future.result() for future in patient] == [0, 1, 2, 3]
        assert tag.ask("after") == "after", "the answer that came too late was dropped"


def test_a_server_that_dies_or_is_closed_while_asked(ends: Any, run_program: Callable[..., Any]) -> None:
    asks, serves, socket_path = ends
    program = run_program(SERVER, socket_path)
    program.expect("up")
    tag = asks.tag("there", codec="json")
    first = tag.ask("hello", timeout=60)
    assert first["said"] == "hello"
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(tag.ask, "wait", None) for _ in range(2)]
        program.expect("asked")
        program.process.kill()
        for future in waiting:
            with pytest.raises(ServerGone, match=str(first["pid"])):
                future.result(timeout=60)
    with pytest.raises(NobodyServes, match=r"nobody serves 'there' within 0\.05 s"):
        tag.ask("anybody?", timeout=0.05)
    # The next server is found without doing anything.
    with serves.tag("there", codec="json").serve(lambda data: data):
        assert tag.ask("again", timeout=60) == "again"


def test_a_tag_has_one_server(ends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asks, serves, _ = ends
    monkeypatch.setattr("ringcast.serving.PATIENCE_S", 0.2)
    with serves.tag("once").serve(lambda data: b"first"):
        assert asks.tag("once").ask(b"") == b"first"
        with pytest.raises(AlreadyServed, match=f"served already, by process .* on node '{serves.node}'"):
            asks.tag("once").serve(lambda data: b"second")
        assert asks.tag("once").ask(b"") == b"first"
    with asks.tag("once").serve(lambda data: b"second"):
        assert serves.tag("once").ask(b"", timeout=60) == b"second"


def test_who_asked_leaves_nothing_behind(ends: Any, eventually: Callable[..., None]) -> None:
    asks, serves, _ = ends
    with serves.tag("short").serve(lambda data: data):
        for number in range(5):
            with asks.tag("short").asker() as asker:
                assert asker.ask(b"%d" % number, 60) == b"%d" % number
        tag = asks.tag("short")
        tag.ask(b"last", timeout=60)
        eventually(lambda: len(asks.tags("@reply/**")) <= 2)


def test_asyncio_asks_and_serves(ends: Any) -> None:
    asks, serves, _ = ends

    async def main() -> None:
        async with (
            ringcast.connect_async(serves.socket_path) as there,
            ringcast.connect_async(asks.socket_path) as here,
        ):
            gate = asyncio.Event()

            async def answer(data: Any) -> Any:
                if data == "last":
                    gate.set()
                elif data == "first":
                    await gate.wait()  # others are served meanwhile
                elif data == "bad":
                    raise ValueError("bad")
                return data

            server = await (await there.tag("loop", codec="json")).serve(answer)
            tag = await here.tag("loop", codec="json")
            assert await asyncio.gather(tag.ask("first"), tag.ask("last"), *(tag.ask(n) for n in range(50))) == [
                "first", "last", *range(50)
            ]  # fmt: skip
            with pytest.raises(AskFailed, match="raised ValueError: bad"):
                await tag.ask("bad")
            gate.clear()
            waiting = asyncio.ensure_future(tag.ask("first", timeout=None))
            assert await tag.ask("second") == "second"
            await server.close()
            with pytest.raises(ServerGone):
                await waiting
            with pytest.raises(NobodyServes):
                await tag.ask("first", timeout=0.05)
            plain = await (await there.tag("loop", codec="json")).serve(lambda data: [data])
            assert await tag.ask("x", timeout=60) == ["x"]
            await plain.close()

    asyncio.run(main())


def test_a_question_that_is_no_value_of_the_tag(ends: Any) -> None:
    asks, serves, _ = ends
    tag = serves.tag("typed", codec="json", schema=int)
    with tag.serve(lambda data: data + 1):
        asker = asks.tag("typed", codec="json", schema=int).asker()
        assert asker.ask(1, 60) == 2
        asker.encoded = lambda data: b'"text"'
        with pytest.raises(AskFailed) as caught:
            asker.ask(1, 60)
        assert caught.value.kind == DecodeError.__name__
