"""Scaling what was pulled, in processes of their own: one per codec, started when needed, ended when idle.

Invariants: a scaler that crashes or hangs costs the pulls that met it, which say so, and no others: scalers of other
codecs have other processes, and no thread of the daemon waits for one. A question that is not answered in time ends the
process; the next one gets a new process. One question at a time for each codec, in the order of asking.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
from collections.abc import Callable

import msgspec

from ringcast.control.service import PullAnswer
from ringcast.daemon.stages.runners import spawn
from ringcast.errors import BrokenError, ResourceLimit, ScaleError
from ringcast.model.tag import TagAttributes
from ringcast.scaling.pull_worker import LENGTH_BYTES, Scaled, ToScale

logger = logging.getLogger("ringcast.daemon")

IDLE_S = 30.0
ANSWER_S = 8.0
"""How long a scaler may take for one pull; as long again may a pull wait for those before it."""
MAX_SCALERS = 8
"""Processes at once, of as many codecs."""
REAP_S = 0.05
_LAST_WAIT_S = 1.0


class PullScaler:
    def __init__(self) -> None:
        self._scalers: dict[str, _Scaler] = {}

    async def scaled(self, answer: PullAnswer, attributes: TagAttributes, size: tuple[int, int]) -> PullAnswer:
        """The same with its payloads scaled. Raises ScaleError (among others, the scaler took too long), BrokenError
        (it crashed), ResourceLimit."""
        if not answer.messages:
            return msgspec.structs.replace(answer, size=size)
        question = ToScale(attributes, size, [message.payload for message in answer.messages])
        found = await self._scaler(attributes.codec).ask(question)
        if found.error or len(found.payloads) != len(answer.messages):
            raise ScaleError(attributes.codec, found.error or "the scaler left messages out")
        messages = [
            msgspec.structs.replace(message, payload=payload)
            for message, payload in zip(answer.messages, found.payloads, strict=True)
        ]
        return msgspec.structs.replace(answer, messages=messages, size=size)

    def _scaler(self, codec: str) -> _Scaler:
        if codec not in self._scalers:
            if len(self._scalers) >= MAX_SCALERS:
                raise ResourceLimit(f"scalers of {MAX_SCALERS} codecs are at work here", "pull again in a minute")
            self._scalers[codec] = _Scaler(codec, lambda: self._scalers.pop(codec, None))
        return self._scalers[codec]

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for scaler in list(self._scalers.values()):
            scaler.close()
        self._scalers.clear()


class _Scaler:
    """The process of one codec; `on_idle` is called when it was ended because nobody asked."""

    def __init__(self, codec: str, on_idle: Callable[[], object]) -> None:
        self._codec = codec
        self._on_idle = on_idle
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, question: ToScale) -> Scaled:
        self._waiting += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        try:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._turn.acquire()
            except TimeoutError as exc:
                busy = f"pulls before this one kept its scaler busy for {ANSWER_S:g} s; pull again later"
                raise ScaleError(self._codec, busy) from exc
            try:
                return await self._ask(question)
            finally:
                self._turn.release()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._nobody_asks)

    async def _ask(self, question: ToScale) -> Scaled:
        packet = await asyncio.to_thread(msgspec.msgpack.encode, question)
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = self._streams or await self._begin()
                writer.write(len(packet).to_bytes(LENGTH_BYTES) + packet)
                await writer.drain()
                length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
                body = await reader.readexactly(length)
        except TimeoutError as exc:
            self._end()
            late = f"its scaler gave no answer within {ANSWER_S:g} s and was ended"
            logger.warning("codec %r: %s", self._codec, late)
            raise ScaleError(self._codec, late) from exc
        except (OSError, EOFError) as exc:
            self._end()
            logger.warning("the process that scales pulls is gone; a scaler of %r crashed", self._codec)
            raise BrokenError(f"the scaler of codec {self._codec!r} crashed") from exc
        except BaseException:
            self._end()  # what it would answer now is not for the next one
            raise
        return await asyncio.to_thread(msgspec.msgpack.decode, body, type=Scaled)

    async def _begin(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        spawning = asyncio.ensure_future(asyncio.to_thread(spawn, "ringcast.scaling.pull_worker", socket.SOCK_STREAM))
        try:
            self._process, sock = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            spawning.add_done_callback(_unwanted)  # nobody waits for it any more, and it begins all the same
            raise
        self._streams = await asyncio.open_connection(sock=sock)
        return self._streams

    def close(self) -> None:
        process = self._process
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._end()
        if process is not None:
            try:
                process.wait(_LAST_WAIT_S)  # it was killed; this takes no time
            except subprocess.TimeoutExpired:
                pass

    def _nobody_asks(self) -> None:
        self._idle = None
        self._end()
        self._on_idle()

    def _end(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
        if self._process is not None:
            self._process.kill()  # one that hangs does not see that its socket was closed
            _reap(self._process)
            self._process = None


def _unwanted(spawning: asyncio.Future[tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
    if not spawning.cancelled() and spawning.exception() is None:
        process, sock = spawning.result()
        sock.close()
        process.kill()
        _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Without a thread that waits: a process that is killed is gone at the first or second look."""
    if process.poll() is None:
        asyncio.get_running_loop().call_later(REAP_S, _reap, process)
