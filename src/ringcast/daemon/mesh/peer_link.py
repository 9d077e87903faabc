"""One TCP link between two daemons in the event loop: frames in, messages and payloads out.

Invariants: never blocks; short messages overtake payloads, which go out piece by piece, so that a large payload delays
a ping by a piece and not by itself; what waits to be sent is bounded, and a peer that does not read loses its link;
nothing more is read after bytes that were no message. Does not know what messages mean.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ringcast.control.peering import (
    MAX_FRAME_BYTES,
    FrameReader,
    Hello,
    NodeRecord,
    PeerMessage,
    decode_hello_untrusted,
    decode_untrusted,
    encode_frame,
)
from ringcast.errors import BadMessage
from ringcast.model.addresses import join

if TYPE_CHECKING:
    from ringcast.security.identity import Proof

MAX_OUTBOX_BYTES = 64 * 1024 * 1024
"""Of messages waiting for the peer to read."""
MAX_QUEUED_BYTES = 96 * 1024 * 1024
"""Of payloads waiting their turn."""
WRITE_AHEAD_BYTES = 256 * 1024
UNSENT_BYTES = 128 * 1024
"""In the kernel, so that what is written next is not far behind."""
UNANSWERED_MS = 10_000
"""After how long without an acknowledgement a host is gone."""
TURN_S = 0.005
"""So long messages of one link are handled before others have their turn."""
END_S = 2.0
"""How long a closed link waits for the other side to close, too, so that nothing under way is lost."""


class PeerLink(asyncio.Protocol):
    """`address` is what was dialled, None when the other side did."""

    def __init__(
        self,
        number: int,
        address: str | None,
        *,
        on_up: Callable[[PeerLink], None],
        on_message: Callable[[PeerLink, PeerMessage], None],
        on_offence: Callable[[PeerLink, str], None],
        on_down: Callable[[PeerLink], None],
    ) -> None:
        self.number = number
        self.address = address
        self.peer: NodeRecord | None = None
        """Who the other side says it is."""
        self.proof: Proof | None = None
        """Who the other side is, by its certificate; None where nodes have none."""
        self.closing = False
        self.slow = False
        """It was closed because the peer did not read."""
        self._on_up = on_up
        self._on_message = on_message
        self._on_offence = on_offence
        self._on_down = on_down
        self._reader = FrameReader()
        self._deaf = False
        self._transport: asyncio.Transport | None = None
        self._payloads: deque[Iterator[bytes]] = deque()
        self._queued_bytes = 0
        self._room: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._paused = False
        self._resting = False
        self._behind = False
        """Something that came waits for its turn; nothing more is read meanwhile."""
        self._end: asyncio.TimerHandle | None = None

    @property
    def local_host(self) -> str:
        """This machine's address by which the other side reaches it; '' when it is not known."""
        name: Any = self._transport.get_extra_info("sockname") if self._transport else None
        return str(name[0]) if name else ""

    @property
    def remote(self) -> str:
        """Where the other side is."""
        name: Any = self._transport.get_extra_info("peername") if self._transport else None
        return join(str(name[0]), int(name[1])) if name else str(self.address)

    # ------------------------------------------------------------------ sending

    def send(self, message: PeerMessage) -> None:
        if self._transport is None or self.closing or self._transport.is_closing():
            return
        self._transport.write(encode_frame(message))
        if self._transport.get_write_buffer_size() > MAX_OUTBOX_BYTES:
            self.slow = True
            self._transport.abort()

    async def room_for(self, size: int) -> None:
        """Wait until a payload of that size may be queued: those before it come first."""
        if self._room or (self._queued_bytes and self._queued_bytes + size > MAX_QUEUED_BYTES):
            future = asyncio.get_running_loop().create_future()
            self._room.append((size, future))
            await future

    def send_payload(self, frames: Iterator[bytes], size: int) -> None:
        """Send frames as the peer takes them, taking turns with other payloads. After the end they are dropped: an
        answer may be ready only when the link is being closed."""
        if self._end is not None:
            return
        self._queued_bytes += size
        self._payloads.append(self._counted(frames, size))
        self._pump()

    def _counted(self, frames: Iterator[bytes], size: int) -> Iterator[bytes]:
        try:
            yield from frames
        finally:
            self._queued_bytes -= size
            self._make_room()

    def _pump(self) -> None:
        while self._payloads and not self._paused and self._transport is not None:
            frames = self._payloads.popleft()
            frame = next(frames, None)
            if frame is not None:
                self._payloads.append(frames)
                self._transport.write(frame)
        if self.closing and not self._payloads:
            self._say_end()

    def _make_room(self) -> None:
        while self._room:
            size, future = self._room[0]
            if not future.done() and self._queued_bytes and self._queued_bytes + size > MAX_QUEUED_BYTES:
                return
            self._room.popleft()
            if not future.done():
                future.set_result(None)

    # ------------------------------------------------------------------ ending

    def close(self, *, gently: bool = False) -> None:
        """Send what waits, with `gently` payloads too, then end; read on until the other side ends as well."""
        if self.closing:
            return
        self.closing = True
        if not gently:
            self._payloads.clear()
        self._pump()

    def _say_end(self) -> None:
        if self._transport is None or self._transport.is_closing() or self._end is not None:
            return
        try:
            if self._transport.can_write_eof():
                self._transport.write_eof()
            else:  # TLS says it in its own way, after what is under way
                self._transport.close()
        except OSError:  # the other side has reset the connection, and asyncio has not read that yet
            self._transport.abort()
            return
        self._end = asyncio.get_running_loop().call_later(END_S, self._transport.abort)

    def abort(self) -> None:
        self.closing = True
        if self._transport is not None:
            self._transport.abort()

    def rest(self, seconds: float) -> None:
        """Read nothing for a moment: the other side asks too fast. What was read already is handled."""
        if self._transport is not None and not self._transport.is_closing() and not self._resting:
            self._resting = True
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(seconds, self._rested)

    def _rested(self) -> None:
        self._resting = False
        if not self._behind:
            self._resume()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # ------------------------------------------------------------------ what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)
        _tune(self._transport.get_extra_info("socket"))
        self._on_up(self)

    def data_received(self, data: bytes) -> None:
        if not self._deaf:
            self._reader.feed(data)
            if not self._behind:
                self._take()

    def _take(self) -> None:
        """Handle what came, for a moment, and the rest when others had their turn."""
        loop = asyncio.get_running_loop()
        until = loop.time() + TURN_S
        self._behind = False
        while self._take_one():
            if loop.time() >= until and self._transport is not None and not self._transport.is_closing():
                self._behind = True
                self._transport.pause_reading()
                loop.call_soon(self._take_more)
                return

    def _take_more(self) -> None:
        if self._behind:
            self._take()
            if not self._behind and not self._resting:
                self._resume()

    def _take_one(self) -> bool:
        try:
            if self._deaf or (body := self._reader.next_body()) is None:
                return False
            self._on_message(self, self._decode(body))
        except BadMessage as exc:
            self._deaf = True
            self._on_offence(self, exc.reason)
        return True

    def _decode(self, body: bytes) -> PeerMessage:
        if self.peer is not None:
            return decode_untrusted(body)
        hello: Hello = decode_hello_untrusted(body)
        if self.proof is not None and hello.record.name != self.proof.name:
            raise BadMessage(f"it calls itself {hello.record.name!r}, and its certificate is for {self.proof.name!r}")
        self.peer = hello.record
        self._reader.limit_bytes = MAX_FRAME_BYTES
        return hello

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._behind:  # it came before the end
            self._behind = False
            while self._take_one():
                pass
        self.closing = True
        if self._end is not None:
            self._end.cancel()
        self._payloads.clear()
        self._queued_bytes = 0
        self._make_room()
        self._on_down(self)


def _tune(sock: socket.socket | None) -> None:
    unsent, unanswered = socket.TCP_NOTSENT_LOWAT, socket.TCP_USER_TIMEOUT
    for option, value in ((socket.TCP_NODELAY, 1), (unsent, UNSENT_BYTES), (unanswered, UNANSWERED_MS)):
        try:
            if sock is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
        except OSError:  # a matter of speed only
            pass
