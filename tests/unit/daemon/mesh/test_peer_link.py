"""A link between two daemons, at its end."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from ringcast.control.peering import MAX_FRAME_BYTES, NodeRecord, Ping, encode_frame
from ringcast.daemon.mesh.peer_link import PeerLink


class Wire:
    """A transport that keeps what is written, and refuses it after the end as asyncio's does."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.ended = False
        self.aborted = False
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write(self, data: bytes) -> None:
        if self.ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        self.written.append(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_extra_info(self, name: str) -> Any:
        return None

    def abort(self) -> None:
        self.aborted = True


def test_an_answer_that_is_ready_after_the_end_is_dropped() -> None:
    async def run() -> list[bytes]:
        link, wire = _link(), Wire()
        link._transport = wire  # type: ignore[assignment]
        link.send_payload(iter([b"before"]), 6)
        link.close(gently=True)
        assert wire.ended
        link.send_payload(iter([b"after"]), 5)
        await asyncio.wait_for(link.room_for(1 << 40), 1)  # nothing of it counts as under way
        link.abort()
        return wire.written

    assert asyncio.run(run()) == [b"before"]


def test_a_connection_that_was_reset_before_its_end_is_dropped() -> None:
    class Reset(Wire):
        def write_eof(self) -> None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    async def run() -> bool:
        link, wire = _link(), Reset()
        link._transport = wire  # type: ignore[assignment]
        link.close()
        return wire.aborted

    assert asyncio.run(run())


def test_many_messages_at_once_are_handled_in_turns_with_everybody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order; nothing more is read meanwhile, and what came before the end is handled before it."""
    monkeypatch.setattr("ringcast.daemon.mesh.peer_link.TURN_S", 0.0)
    happened: list[str] = []

    async def run() -> Wire:
        wire = Wire()
        link = PeerLink(
            1, None, on_up=lambda _: None, on_offence=lambda *_: None, on_down=lambda _: happened.append("end"),
            on_message=lambda _, message: happened.append(str(message.seq)),
        )  # fmt: skip
        link._transport = wire  # type: ignore[assignment]
        link.peer = NodeRecord("other", 1, 0, 1)
        link._reader.limit_bytes = MAX_FRAME_BYTES
        link.data_received(b"".join(encode_frame(Ping(seq=seq)) for seq in range(3)))
        asyncio.get_running_loop().call_soon(happened.append, "another")
        assert not wire.reading
        while not wire.reading:
            await asyncio.sleep(0)
        link.data_received(b"".join(encode_frame(Ping(seq=seq)) for seq in range(3, 6)))
        link.connection_lost(None)
        await asyncio.sleep(0)
        return wire

    asyncio.run(run())
    assert [what for what in happened if what != "another"] == ["0", "1", "2", "3", "4", "5", "end"]
    assert happened.index("another") < happened.index("2")


def _link() -> PeerLink:
    def ignore(*_: Any) -> None: ...

    return PeerLink(1, None, on_up=ignore, on_message=ignore, on_down=ignore, on_offence=ignore)
