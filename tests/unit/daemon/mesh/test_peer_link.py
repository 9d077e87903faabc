"""A link between two daemons, at its end."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

from ringcast.daemon.mesh.peer_link import PeerLink


class Wire:
    """A transport that keeps what is written, and refuses it after the end as asyncio's does."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.ended = False
        self.aborted = False

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


def _link() -> PeerLink:
    def ignore(*_: Any) -> None: ...

    return PeerLink(1, None, on_up=ignore, on_message=ignore, on_down=ignore, on_offence=ignore)
