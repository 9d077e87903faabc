"""Handing a stream of another node to the process of its only reader: the socket goes there, the mirror comes back.

Invariants: what a client answers is checked as a publisher's ring is; a client that refuses, or does not answer in
time, is not asked again; when the channel is closed its client is told, and nobody waits long for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable

import msgspec

from ringcast import _core
from ringcast.control.descriptor import Descriptor, own
from ringcast.control.notices import IntakeUnwanted, IntakeWanted
from ringcast.control.requests import IntakeDown, IntakeUp
from ringcast.control.status import InForce
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.errors import BadMessage, BrokenError
from ringcast.transport import Channel
from ringcast.transport.addressing import bound, widen_receive_buffer
from ringcast.transport.interface import MirrorBefore
from ringcast.transport.urgent.urgency import Urgency

logger = logging.getLogger("ringcast.daemon")

ANSWER_S = 1.0
COPIED_BYTES_PER_S = 50e6
"""By a client on a busy machine, of what a mirror before it holds."""
END_S = 0.5
"""How long a client may take to stop writing; one that was stopped or killed never says so."""
Answer = tuple[IntakeUp, list[Descriptor]]


class Handing:
    """`deliver` brings notices to clients; `answered` is called with what comes back."""

    def __init__(self, local: Local, host: str, deliver: Callable[[list[Send]], None]) -> None:
        self._local = local
        self._host = host
        self._deliver = deliver
        self._awaited: dict[int, tuple[int, asyncio.Future[Answer]]] = {}  # client and answer, by the channel's key

    def end(self, reader: tuple[int, int]) -> HandedReceiving:
        """The receiving end of a channel for that client's subscription. Raises OSError."""
        return HandedReceiving(self, reader, bound(socket.SOCK_DGRAM, self._host, 0))

    async def ask(
        self, reader: tuple[int, int], channel: Channel, sock: socket.socket, clock: _core.TimeBase,
        before: MirrorBefore | None,
    ) -> HandedMirror:  # fmt: skip
        """Raises BrokenError, BadMessage, CorruptRing, TimeoutError."""
        client, subscription = reader
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._awaited[channel.key] = (client, answer)
        encoded = msgspec.msgpack.encode(channel)
        fds = [sock.fileno(), clock.fd] if before is None else [sock.fileno(), clock.fd, before.ring_fd]
        wanted = IntakeWanted(
            subscription=subscription, intake=channel.key, channel=encoded, before=before and before[1:]
        )
        patience_s = ANSWER_S + (0.0 if before is None else before.capacity_bytes / COPIED_BYTES_PER_S)
        try:
            self._deliver([Send(client, wanted, tuple(own(map(os.dup, fds))))])
            up, given = await asyncio.wait_for(answer, patience_s)
            if self._local.rings.of_incarnation(up.incarnation) is not None:
                raise BadMessage("a mirror came with the number of another ring")
            return HandedMirror(up.incarnation, channel, given)
        except (BrokenError, BadMessage, TimeoutError) as exc:
            logger.info("client %d does not receive %x itself: %s", client, channel.key, str(exc) or "no answer")
            if client in self._local.clients:
                self._local.clients[client].receives = False
            raise
        finally:
            del self._awaited[channel.key]

    def answered(self, client: int, answer: IntakeUp | IntakeDown, fds: list[Descriptor]) -> None:
        """Raises BadMessage."""
        asked, waiting = self._awaited.get(answer.intake, (client, None))
        if asked != client or (isinstance(answer, IntakeUp) and len(fds) != 4):
            raise BadMessage(f"an intake that was not asked for, or with {len(fds)} descriptors")
        if waiting is None or waiting.done():
            return
        if isinstance(answer, IntakeUp):
            waiting.set_result((answer, fds))
        else:
            waiting.set_exception(BrokenError(f"the subscriber cannot receive it: {answer.reason}"))

    def end_intake(self, reader: tuple[int, int], key: int) -> None:
        client, subscription = reader
        if client in self._local.clients:
            self._deliver([Send(client, IntakeUnwanted(subscription=subscription, intake=key))])


class HandedMirror:
    """The mirror that a client writes, as far as it shows it. See `ringcast.transport.interface.Mirror`."""

    def __init__(self, incarnation: int, channel: Channel, fds: list[Descriptor]) -> None:
        self.incarnation = incarnation
        self.memory_bytes = _core.ring_memory_bytes(channel.depth, channel.capacity_bytes)
        self._ring, self._bell, self._fanout, page = fds
        self._shown = _core.ShownMirror(page.fileno())
        self._first_seq = channel.first_seq
        self._ends_at: float | None = None

    @property
    def ring_fd(self) -> int:
        return self._ring.fileno()

    @property
    def bell_fd(self) -> int:
        return self._bell.fileno()

    def take_fanout(self) -> Descriptor:
        return self._fanout

    @property
    def next_seq(self) -> int:
        return max(self._first_seq, self._shown.next_seq)

    @property
    def closed(self) -> bool:
        return self._shown.closed or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def end(self) -> None:
        self._ends_at = time.monotonic() + END_S

    def follow(self, sender: _core.TimeBase) -> None:
        """The client was given the clock with the socket."""

    def counters(self) -> dict[str, int]:
        return self._shown.counters()


class HandedReceiving:
    """A receiving end for one channel, in a client's process. See `ringcast.transport.interface.ReceivingEnd`. It is
    never retuned: with other parameters such a channel is opened anew."""

    def __init__(self, handing: Handing, reader: tuple[int, int], sock: socket.socket) -> None:
        self._handing = handing
        self._reader = reader
        self._socket = sock
        widen_receive_buffer(sock)
        self._mirror: HandedMirror | None = None

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def open_there(
        self, channel: Channel, clock: _core.TimeBase, before: MirrorBefore | None = None
    ) -> HandedMirror:
        """Raises BrokenError, BadMessage, CorruptRing, TimeoutError."""
        try:
            self._mirror = await self._handing.ask(self._reader, channel, self._socket, clock, before)
        except BaseException:
            self._handing.end_intake(self._reader, channel.key)
            raise
        return self._mirror

    def close_channel(self, key: int) -> None:
        if self._mirror is not None:
            self._mirror.end()
        self._handing.end_intake(self._reader, key)

    def attach_fanout(self, key: int, socket_fd: int) -> None:
        """The client made the socket, and gave our end of it."""

    def ended(self) -> list[int]:
        return []

    def hears(self, key: int) -> bool:
        return True

    def regroup(self, key: int, peers: list[str]) -> None:
        """Who else gets the stream does not matter to `nak`."""

    def counters(self) -> dict[str, int]:
        return {}

    def in_force(self) -> InForce:
        """Which of the client's threads receives changes all the time."""
        return Urgency("").in_force(self._socket, 0, own=True)

    def close(self) -> None:
        self._socket.close()
