"""A process that runs one stage for a daemon: `python -m ringcast.scaling.worker FD`.

A scaler is somebody's plug-in: here it may crash, leak or hang, and cost its own stage and nothing else. FD is a
SOCK_SEQPACKET socket; `StageWanted` comes with the source's descriptors, `StageUp` goes back with those of the ring it
feeds, or `StageDown` with the reason. End of file is the daemon's word that the stage is to end, once it has scaled
what there is.
"""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress

from ringcast.control import link
from ringcast.control.notices import StageWanted
from ringcast.control.requests import StageDown, StageUp
from ringcast.errors import BadMessage
from ringcast.scaling.stage import Stage, StageSource


def main(fd: int) -> int:
    with socket.socket(fileno=fd) as sock:
        received = link.receive_reply(sock)
        if received is None:
            return 0
        wanted = received.message
        if not isinstance(wanted, StageWanted) or len(received.fds) != 2:
            raise BadMessage("the daemon did not say which stage")
        ended = threading.Event()
        try:
            stage = _begin(sock, wanted, ended, *received.fds)
        except Exception as exc:  # a plug-in's import may raise anything
            with suppress(ConnectionError):  # the daemon ended while the scaler was loaded
                link.send(sock, StageDown(id=0, stage=wanted.stage, reason=f"{type(exc).__name__}: {exc}"))
            return 1
        finally:
            received.close()
        stage.run(ended.is_set)
        stage.close()
    return 0


def _begin(
    sock: socket.socket, wanted: StageWanted, ended: threading.Event, ring_fd: int, bell_fd: int
) -> Stage:  # fmt: skip
    source = StageSource(ring_fd, bell_fd, wanted.depth, wanted.capacity_bytes, wanted.ring)
    stage = Stage(
        source,
        wanted.attributes,
        wanted.size,
        every=wanted.every,
        first_seq=wanted.first_seq,
        passed=wanted.passed,
        reliable=wanted.reliable,
    )
    up = StageUp(
        id=0, stage=wanted.stage, incarnation=stage.writer.incarnation, depth=stage.writer.depth,
        capacity_bytes=stage.writer.capacity_bytes,
    )  # fmt: skip
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        stage.writer.attach_fanout(ours.fileno())
        # Before the daemon hears of it and gives this thread its schedule: one with a reservation starts no others.
        threading.Thread(target=_watch, args=(sock, stage, ended), daemon=True).start()
        link.send(sock, up, (stage.writer.ring_fd, stage.writer.bell_fd, theirs.fileno()))
    return stage


def _watch(sock: socket.socket, stage: Stage, ended: threading.Event) -> None:
    try:
        while sock.recv(1):
            pass
    except OSError:
        pass
    ended.set()
    stage.poke()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
