"""Names are looked up beside the loop, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.daemon.streams.resolving import resolved


def test_an_address_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> list[str]:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", None)
        return [await resolved(host) for host in ("", "10.0.0.1", "fe80::1")]

    assert asyncio.run(body()) == ["", "10.0.0.1", "fe80::1"]


def test_a_name_becomes_an_address() -> None:
    assert asyncio.run(resolved("localhost")) in ("127.0.0.1", "::1")


def test_a_name_server_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*args: Any, **how: Any) -> list[Any]:
        await asyncio.Event().wait()
        return []

    async def body() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", silent)
        await resolved("far.example", timeout_s=0.01)

    with pytest.raises(OSError, match=r"'far\.example' was not resolved within"):
        asyncio.run(body())
