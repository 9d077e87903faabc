"""The daemon as a publisher on a tag of its own. It is a client of its own local manager, with a number that no
connection has. Invariant: while the daemon runs it publishes again whatever becomes of its tag or its ring."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable

from ringcast import _core
from ringcast.control.answers import Published
from ringcast.control.descriptor import own
from ringcast.control.requests import Hello, OpenTag, Publish
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.rings.registrations import OWN_CLIENT
from ringcast.errors import RingcastError
from ringcast.model.tag import TagAttributes


class OwnPublisher:
    """`deliver` tells clients of the ring, `changed` everybody else."""

    def __init__(
        self, local: Local, name: str, attributes: TagAttributes, deliver: Callable[[list[Send]], None],
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._local = local
        self._name = name
        self._attributes = attributes
        self._deliver = deliver
        self._changed = changed
        self._writer: _core.RingWriter | None = None

    @property
    def begun(self) -> bool:
        return self._writer is not None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def send(self, data: bytes) -> None:
        """Raises RingcastError: NoSpace above all."""
        if self._writer is not None and not self._local.is_published(self._writer.incarnation):
            self._writer.close()  # its tag is gone, and the ring with it
            self._writer = None
        if self._writer is None:
            self._writer = self._publish()
        self._writer.send(data)

    def _publish(self) -> _core.RingWriter:
        name, attributes = self._name, self._attributes
        if OWN_CLIENT not in self._local.clients:
            self._local.join(OWN_CLIENT, os.getpid(), getpass.getuser(), Hello(id=0, program="ringcast daemon"), [])
        self._local.handle(OWN_CLIENT, OpenTag(id=0, name=name), [])
        writer = _core.RingWriter(depth=attributes.depth, capacity_bytes=attributes.capacity_bytes, max_wait_s=0)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            writer.attach_fanout(ours.fileno())
            fds = own(map(os.dup, (writer.ring_fd, writer.bell_fd, theirs.fileno())))
        request = Publish(
            id=0, tag=name, incarnation=writer.incarnation, depth=writer.depth, capacity_bytes=writer.capacity_bytes
        )
        answers = self._local.handle(OWN_CLIENT, request, fds)
        if not any(isinstance(answer.message, Published) for answer in answers):
            raise RingcastError(f"{name} could not be published on: {[answer.message for answer in answers]}")
        self._deliver(answers)
        self._changed()
        return writer
