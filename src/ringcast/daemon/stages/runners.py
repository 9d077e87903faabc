"""Who runs a stage for the daemon: the publisher's own process, or a process of its own on this node.

Both are asked with the same message and answer with the same; they differ in how the message gets there. Invariants: a
runner that was started ends once, by `end` or by its own death, which `on_gone` is told; what it made belongs to the
caller. Must not know what is scaled, nor why.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ringcast.control import link
from ringcast.control.descriptor import Descriptor, Openable, own
from ringcast.control.notices import StageUnwanted, StageWanted
from ringcast.control.requests import StageDown, StageUp
from ringcast.daemon.background import Background
from ringcast.daemon.effects import Send
from ringcast.errors import BadMessage, BrokenError, ResourceLimit
from ringcast.model import priority
from ringcast.model.schedule import Schedule
from ringcast.transport.urgent import scheduling
from ringcast.transport.urgent.limits import LIMITS

logger = logging.getLogger("ringcast.daemon")

PATIENCE_S = 10.0
"""A process has to start and import its scalers."""
END_S = 2.0


class Declined(BrokenError):
    """The runner cannot scale that, for example because it has no scaler for the codec. Asking again would not help."""


class Made(NamedTuple):
    up: StageUp
    fds: list[Descriptor]


class StageRunner(Protocol):
    async def begin(self, wanted: StageWanted, files: tuple[Openable, ...], on_gone: Callable[[str], None]) -> Made:
        """Raises BrokenError, BadMessage, ResourceLimit, TimeoutError."""

    async def end(self) -> None:
        """Returns once nothing more is written, or the runner was too slow and was killed."""


class PublisherRunner:
    """`deliver` brings a notice to the client; `answered` is called with what comes back."""

    def __init__(self, client: int, ring: int, deliver: Callable[[list[Send]], None]) -> None:
        self.client = client
        self.ring = ring
        self._deliver = deliver
        self._answer: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._wanted: StageWanted | None = None
        self._on_gone: Callable[[str], None] | None = None

    async def begin(self, wanted: StageWanted, files: tuple[Openable, ...], on_gone: Callable[[str], None]) -> Made:
        self._wanted = wanted
        self._deliver([Send(self.client, wanted)])
        made = await asyncio.wait_for(asyncio.shield(self._answer), PATIENCE_S)
        if self._ended.is_set():  # in the same breath
            raise BrokenError("the stage ended when it had just begun")
        self._on_gone = on_gone
        return made

    def answered(self, answer: StageUp | StageDown, fds: list[Descriptor]) -> None:
        """Raises BadMessage."""
        if isinstance(answer, StageUp):
            if len(fds) != 3:
                raise BadMessage(f"a stage came with {len(fds)} descriptors, not 3")
            if self._ended.is_set():  # it was on its way when the publisher left
                return
            if self._answer.done():
                raise BadMessage("a stage came a second time")
            self._answer.set_result(Made(answer, fds))
            return
        self.gone(answer.reason or "it was ended")

    def gone(self, reason: str) -> None:
        """The publisher is gone, or the stage ended."""
        if self._ended.is_set():
            return
        self._ended.set()
        if not self._answer.done():
            self._answer.set_exception(Declined(f"the publisher does not scale: {reason}"))
            self._answer.exception()  # nobody may wait for it any more
        elif self._on_gone is not None:
            self._on_gone(reason)

    async def end(self) -> None:
        self._on_gone = None
        if self._wanted is None or self._ended.is_set():
            return
        unwanted = StageUnwanted(publisher=self._wanted.publisher, stage=self._wanted.stage)
        self._deliver([Send(self.client, unwanted)])
        try:
            await asyncio.wait_for(self._ended.wait(), END_S)
        except TimeoutError:
            logger.warning("a publisher did not end its stage in time")


class ProcessRunner:
    """`python -m ringcast.scaling.worker`, with a socket between us. Its thread has the schedule of `urgency`, where
    the kernel and the node's limits allow it; else it runs without."""

    def __init__(self, background: Background, urgency: str = "") -> None:
        self._background = background
        self._urgency = urgency
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._on_gone: Callable[[str], None] | None = None
        self._gone = asyncio.Event()
        self._taken: Schedule | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def begin(self, wanted: StageWanted, files: tuple[Openable, ...], on_gone: Callable[[str], None]) -> Made:
        self._process, sock = await asyncio.to_thread(spawn, "ringcast.scaling.worker", socket.SOCK_SEQPACKET)
        sock.setblocking(False)
        self._socket = sock
        answer: asyncio.Future[Made] = self._loop.create_future()
        self._loop.add_reader(sock.fileno(), self._read, sock, answer)
        try:
            opened = [file.open() for file in files]
            link.send(sock, wanted, [fd.fileno() for fd in opened])
            made = await asyncio.wait_for(answer, PATIENCE_S)
        except BaseException:
            await self.end()
            raise
        self._on_gone = on_gone
        self._schedule()
        return made

    def _schedule(self) -> None:
        wanted = priority.read(self._urgency)
        if wanted.sched and self._process is not None:  # its first thread, which scales, has the process's number
            why = LIMITS.take(wanted.schedule)
            if not why:
                self._taken = wanted.schedule
                why = scheduling.give(self._process.pid, wanted.schedule)
            if why:
                logger.warning("a stage runs without the schedule %s of its channel: %s", wanted.sched, why)

    def _read(self, sock: socket.socket, answer: asyncio.Future[Made]) -> None:
        try:
            received = link.receive_request(sock)
        except BlockingIOError:
            return
        except (OSError, BadMessage):
            received = None
        if received is None:
            self._loop.remove_reader(sock.fileno())
            sock.close()
            self._gone.set()
            self._background.start("end of a stage's process", self._bury(answer))
            return
        fds, message = own(received.fds), received.message
        if answer.done():
            return
        if isinstance(message, StageUp) and len(fds) == 3:
            answer.set_result(Made(message, fds))
        else:
            reason = message.reason if isinstance(message, StageDown) else "its answer cannot be understood"
            answer.set_exception(Declined(f"the stage did not begin: {reason}"))

    async def _bury(self, answer: asyncio.Future[Made]) -> None:
        how = await asyncio.to_thread(self._wait)
        if self._taken is not None:
            LIMITS.give_back(self._taken)
            self._taken = None
        if not answer.done():
            answer.set_exception(BrokenError(f"the stage's process did not begin: it {how}"))
        elif self._on_gone is not None:
            self._on_gone(f"its process {how}")

    def _wait(self) -> str:
        assert self._process is not None
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:  # it closed its socket and goes on
            self._process.kill()
            status = self._process.wait()
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    async def end(self) -> None:
        self._on_gone = None
        if self._socket is None or self._process is None:
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            await asyncio.wait_for(self._gone.wait(), END_S)
        except TimeoutError:
            self._process.kill()
            await self._gone.wait()
        await asyncio.to_thread(self._wait)


def spawn(module: str, kind: socket.SocketKind) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Run a module in a process of its own, with a socket to it. Takes a moment. Raises ResourceLimit."""
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    except OSError as exc:
        raise ResourceLimit(f"no socket for a stage ({exc.strerror})", "raise the limit of open files") from exc
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                # Ctrl-C is for the daemon, which ends its stages in order.
                start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        except OSError as exc:
            ours.close()
            raise ResourceLimit(f"no process for a stage ({exc.strerror})", "raise the limit of processes") from exc
    return process, ours
