"""Scaling what was pulled, in a process of its own: started when the first is asked for, ended when idle.

Invariant: a scaler that crashes costs the pull that met it, which says so; the next one gets a new process. One
question at a time, in the order of asking.
"""

from __future__ import annotations

import asyncio
import logging
import socket

import msgspec

from ringcast.control.service import PullAnswer
from ringcast.daemon.stagehands import spawn
from ringcast.errors import BrokenError, ScaleError
from ringcast.scaling.clerk import LENGTH_BYTES, Scaled, ToScale
from ringcast.tag import TagAttributes

logger = logging.getLogger("ringcast.daemon")

IDLE_S = 30.0


class Clerk:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Task[int]] = set()

    async def scaled(self, answer: PullAnswer, attributes: TagAttributes, size: tuple[int, int]) -> PullAnswer:
        """The same with its payloads scaled. Raises ScaleError, BrokenError (the scaler crashed), ResourceLimit."""
        if not answer.messages:
            return msgspec.structs.replace(answer, size=size)
        question = ToScale(attributes, size, [message.payload for message in answer.messages])
        async with self._lock:
            found = await self._ask(question)
        if found.error or len(found.payloads) != len(answer.messages):
            raise ScaleError(attributes.codec, found.error or "the scaler left messages out")
        messages = [
            msgspec.structs.replace(message, payload=payload)
            for message, payload in zip(answer.messages, found.payloads, strict=True)
        ]
        return msgspec.structs.replace(answer, messages=messages, size=size)

    async def _ask(self, question: ToScale) -> Scaled:
        packet = await asyncio.to_thread(msgspec.msgpack.encode, question)
        reader, writer = self._streams or await self._begin()
        self._streams = reader, writer
        try:
            writer.write(len(packet).to_bytes(LENGTH_BYTES) + packet)
            await writer.drain()
            length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
            body = await reader.readexactly(length)
        except BaseException as exc:
            self.close()  # what it would answer now is not for the next one
            if isinstance(exc, OSError | EOFError):
                logger.warning(
                    "the process that scales pulls is gone; a scaler of %r crashed", question.attributes.codec
                )
                raise BrokenError(f"the scaler of codec {question.attributes.codec!r} crashed") from exc
            raise
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self.close)
        return await asyncio.to_thread(msgspec.msgpack.decode, body, type=Scaled)

    async def _begin(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        process, sock = await asyncio.to_thread(spawn, "ringcast.scaling.clerk", socket.SOCK_STREAM)
        task = asyncio.get_running_loop().create_task(asyncio.to_thread(process.wait))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return await asyncio.open_connection(sock=sock)

    def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
