"""A channel is started with the seal that its receiver was told, or not at all."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ringcast.daemon.streams.seals import Seals
from ringcast.errors import BrokenError, QosMismatch
from ringcast.transport import Transport, find


def run(body: Any) -> Any:
    async def inside() -> Any:
        return body()

    return asyncio.run(inside())


def test_a_channel_has_one_seal_however_often_it_is_asked_for() -> None:
    def body() -> None:
        seals = Seals(True)
        told = seals.make("b", 7, find("udp"))
        assert told is not None
        assert seals.make("b", 7, find("udp")) == told
        assert seals.make("c", 7, find("udp")) != told
        assert seals.take("b", 7, find("udp")) == told
        with pytest.raises(BrokenError, match="open it again"):
            seals.take("b", 7, find("udp"))
        seals.close()

    run(body)


def test_another_nodes_seal_is_not_given_out() -> None:
    def body() -> None:
        seals = Seals(True)
        seals.make("b", 7, find("tcp"))
        with pytest.raises(BrokenError):
            seals.take("c", 7, find("tcp"))
        seals.close()

    run(body)


def test_a_transport_that_cannot_seal_is_refused() -> None:
    other = cast(Transport, SimpleNamespace(name="pigeon"))
    with pytest.raises(QosMismatch, match="does not seal"):
        run(lambda: Seals(True).make("b", 7, other))
    assert run(lambda: Seals(False).make("b", 7, other)) is None


def test_without_identities_nothing_is_sealed() -> None:
    assert run(lambda: Seals(False).make("b", 7, find("udp"))) is None
    assert Seals(False).take("b", 7, find("udp")) is None


def test_a_group_has_its_own() -> None:
    assert run(lambda: Seals(True).make("b", 7, find("nak"))) is not None
    assert Seals(True).take("b", 7, find("nak")) is None
