"""What other nodes ask of this one's channels: the services of `ringcast.control.service`, decoded and passed on.

Invariant: a request that cannot be decoded raises BadMessage and changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ringcast.control import service
from ringcast.control.service import (
    AskSent,
    CloseChannel,
    DirectChannel,
    Nothing,
    OpenAgain,
    OpenChannel,
    RegroupChannel,
    RetuneChannel,
    SentSoFar,
    StartChannel,
)
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.streams.incoming import IncomingChannels
from ringcast.daemon.streams.opening import REQUEST_TIMEOUT_S
from ringcast.daemon.streams.outgoing import OutgoingChannels
from ringcast.errors import BrokenError, RingcastError

AGAIN_S = 2.0
_DONE = service.encode(Nothing())
T = TypeVar("T")


class ChannelServices:
    """`host_of` knows where a node is."""

    def __init__(
        self, mesh: Mesh, incoming: IncomingChannels, outgoing: OutgoingChannels,
        host_of: Callable[[str], Awaitable[str]],
    ) -> None:  # fmt: skip
        self._incoming = incoming
        self._outgoing = outgoing
        self._host_of = host_of
        for name, handler in (
            (service.OPEN, self._open), (service.START, self._start), (service.AGAIN, self._again),
            (service.SENT, self._sent),
            (service.CLOSE, _at_once(CloseChannel, outgoing.close_channel)),
            (service.RETUNE, _at_once(RetuneChannel, outgoing.retune)),
            (service.DIRECT, _at_once(DirectChannel, outgoing.direct)),
            (service.REGROUP, _at_once(RegroupChannel, incoming.regroup)),
        ):  # fmt: skip
            mesh.serve(name, handler)

    async def _open(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, OpenChannel)
        host = await self._host_of(node)
        try:
            return service.encode(await self._outgoing.open(node, host, request))
        except OSError as exc:
            raise _unreachable(node, host, exc) from exc

    async def _start(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, StartChannel)
        host = await self._host_of(node)
        try:
            await self._outgoing.start(node, host, request)
        except OSError as exc:
            raise _unreachable(node, host, exc) from exc
        return _DONE

    async def _sent(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskSent).keys
        found = [self._outgoing.channels.get(key) for key in asked]
        return service.encode(
            SentSoFar(
                next_seqs=[one.source.next_seq if one is not None and one.node == node else None for one in found]
            )
        )

    async def _again(self, node: str, payload: bytes) -> bytes:
        self._incoming.again(node, service.decode_untrusted(payload, OpenAgain).key)
        return _DONE


def _at_once(kind: type[T], act: Callable[[T], None]) -> Callable[[str, bytes], Awaitable[bytes]]:
    """A service that only passes on what it was sent."""

    async def serve(node: str, payload: bytes) -> bytes:
        act(service.decode_untrusted(payload, kind))
        return _DONE

    return serve


class ReceiverNotices:
    """What a sending node tells those that its streams go to. Nobody waits for it. Of a channel's group a node is told
    the newest once it has answered the one before: while members come one after the other through a thin line, what
    would be told of each is told once."""

    def __init__(self, mesh: Mesh, background: Background, complaints: Complaints) -> None:
        self._mesh = mesh
        self._background = background
        self._complaints = complaints
        self._regroups: dict[tuple[str, int], RegroupChannel] = {}
        """The newest for each channel of a node that is being told."""

    def regrouped(self, node: str, notice: RegroupChannel) -> None:
        """Somebody else shares the stream of a channel, or left."""
        is_told = (node, notice.key) in self._regroups
        self._regroups[node, notice.key] = notice
        if not is_told:
            self._background.start(f"regroup at {node}", self._regroup(node, notice.key))

    def open_again(self, node: str, key: int) -> None:
        """A channel was closed here, and the node that it leads to is to open it again."""
        self._background.start(f"open again at {node}", self._again(node, key))

    async def _regroup(self, node: str, key: int) -> None:
        told = None
        try:
            while (notice := self._regroups[node, key]) != told:
                told = notice
                # A node that is gone need not know; the next change is told again.
                with contextlib.suppress(TimeoutError, RingcastError, OSError):
                    await self._mesh.request(node, service.REGROUP, service.encode(notice), REQUEST_TIMEOUT_S)
        finally:
            del self._regroups[node, key]

    async def _again(self, node: str, key: int) -> None:
        # It would wait for ever: tell it until it answers or is gone.
        while self._mesh.node(node) is not None:
            try:
                await self._mesh.request(node, service.AGAIN, service.encode(OpenAgain(key=key)), AGAIN_S)
                return
            except (TimeoutError, RingcastError, OSError) as exc:
                self._complaints.warning(node, "node %s was not told yet to open a channel again: %s", node, exc)
                await asyncio.sleep(AGAIN_S)


def _unreachable(node: str, host: str, error: OSError) -> BrokenError:
    return BrokenError(f"no data reaches node {node!r} at {host}: {error.strerror or error}")
