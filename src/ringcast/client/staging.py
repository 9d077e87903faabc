"""Stages in a publisher's own process: rings with its stream at other sizes, made while somebody wants them.

The daemon says what is wanted; the publisher's `send` then pumps every stage after its message, on its own thread.
Invariant: `send` is asked to pump only while there is a stage. Must not know who wants them.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Protocol

from ringcast.client.connection import Connection
from ringcast.control.notices import StageWanted
from ringcast.control.requests import StageDown, StageUp
from ringcast.errors import ClosedError, RingcastError
from ringcast.scaling.stage import Stage, StageSource

logger = logging.getLogger("ringcast")


class Staged(Protocol):
    """What stages need of the publisher."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def set_stage(self, stage: Callable[[], object] | None) -> None: ...


class PublisherStages:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[int, Stage] = {}
        self._over = False

    def pump(self) -> None:
        """What `send` calls."""
        for stage in tuple(self._stages.values()):
            stage.pump()

    def wanted(self, publisher: Staged, wanted: StageWanted, connection: Connection) -> None:
        """Begin, and tell the daemon; or tell it why not."""
        try:
            stage, answer = self._begin(publisher, wanted, connection)
        except ClosedError:
            return
        except Exception as exc:  # a plug-in's import may raise anything
            logger.warning("the publisher cannot scale to %s: %s", wanted.size, exc)
            connection.post(StageDown(id=0, stage=wanted.stage, reason=str(exc)))
            return
        # What was sent meanwhile; from now on every send does.
        stage.pump()
        logger.debug("stage %d of size %s begins at %d", answer.stage, wanted.size, wanted.first_seq)

    def _begin(self, publisher: Staged, wanted: StageWanted, connection: Connection) -> tuple[Stage, StageUp]:
        source = StageSource(
            publisher.ring_fd, publisher.bell_fd, wanted.depth, wanted.capacity_bytes, wanted.ring
        )  # fmt: skip
        stage = Stage(
            source, wanted.attributes, wanted.size, every=wanted.every, first_seq=wanted.first_seq, passed=wanted.passed
        )
        with self._lock:
            if self._over or publisher.closed:
                stage.close()
                raise ClosedError("publisher")
            up = StageUp(
                id=0, stage=wanted.stage, incarnation=stage.writer.incarnation, depth=stage.writer.depth,
                capacity_bytes=stage.writer.capacity_bytes,
            )  # fmt: skip
            try:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with ours, theirs:
                    stage.writer.attach_fanout(ours.fileno())
                    connection.post(up, (stage.writer.ring_fd, stage.writer.bell_fd, theirs.fileno()))
            except (RingcastError, OSError):
                stage.close()
                raise
            self._stages[wanted.stage] = stage
            publisher.set_stage(self.pump)
        return stage, up

    def unwanted(self, publisher: Staged, number: int, connection: Connection) -> None:
        self._end(publisher, number)
        connection.post(StageDown(id=0, stage=number))

    def forget(self, publisher: Staged) -> None:
        """Another daemon: it will say what it wants."""
        for number in tuple(self._stages):
            self._end(publisher, number)

    def close(self) -> None:
        with self._lock:
            self._over = True
            stages, self._stages = self._stages, {}
        for stage in stages.values():
            stage.close()

    def _end(self, publisher: Staged, number: int) -> None:
        with self._lock:
            stage = self._stages.pop(number, None)
            if not self._stages and not publisher.closed:
                publisher.set_stage(None)
        if stage is not None:
            stage.pump()
            stage.close()
