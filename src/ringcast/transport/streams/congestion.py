"""Which congestion control a stream of tcp has: the node's own, or on a short way one that does not pace.

BBR has the kernel set a timer for every packet, or every 64 KiB where the network card cuts them. Between nodes of one
room that timer takes longer than all else that a packet needs, and there is hardly a queue on the way that pacing
could spare. Elsewhere, and where packets are lost, the node's own choice is in force.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable

logger = logging.getLogger(__name__)

UNPACED = b"reno"
"""Part of every kernel, and everybody may use it."""
PACED = b"bbr"
SHORT_NS = 1_000_000
"""A way there and back that is not longer."""
MOST_LOST = 0.01
FEWEST_SEGMENTS = 1000
_NAME_BYTES = 16
# struct tcp_info of Linux: total_retrans, min_rtt (us), data_segs_out, dsack_dups.
_INFO_BYTES = 220
_FIELDS = (100, 148, 156, 216)
_WORD = struct.Struct("=I")


class Progress:
    """What the kernel knows of a stream: the shortest way there and back, what it sent, and what of that was lost."""

    def __init__(self, stream: socket.socket) -> None:
        """Raises OSError."""
        told = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        if len(told) < _INFO_BYTES:
            raise OSError("this kernel says too little of a stream")
        resent, way_us, segments, unneeded = (int(_WORD.unpack_from(told, at)[0]) for at in _FIELDS)
        self.way_ns = way_us * 1000
        self.segments = segments
        self.lost = max(0, resent - unneeded)


class Congestion:
    """Of a stream that is not connected yet."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._usual = b""
        """What to go back to; empty while the node's own is in force."""
        self._segments = self._lost = 0
        try:
            usual = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES).rstrip(b"\0")
            if usual.startswith(PACED):
                # Before it is connected: a stream that was once paced stays so, whatever comes after.
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)
                self._usual = usual
        except OSError as exc:
            logger.debug("a stream keeps its congestion control: %s", exc)

    @property
    def unpaced(self) -> bool:
        """Whether the stream has another one than the node."""
        return bool(self._usual)

    def connected(self) -> None:
        """Now the way is known."""
        self._judge(lambda progress: progress.way_ns > SHORT_NS, "its way is long")

    def look(self) -> None:
        """Called now and then."""
        self._judge(self._loses, "packets are lost on its way")

    def _loses(self, progress: Progress) -> bool:
        segments, lost = progress.segments - self._segments, progress.lost - self._lost
        if segments < FEWEST_SEGMENTS:
            return False
        self._segments, self._lost = progress.segments, progress.lost
        return lost > MOST_LOST * segments

    def _judge(self, unsuited: Callable[[Progress], bool], reason: str) -> None:
        if not self._usual:
            return
        try:
            if unsuited(Progress(self._stream)):
                self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._usual)
                logger.debug("a stream goes back to %s: %s", self._usual.decode(), reason)
                self._usual = b""
        except OSError:  # closed meanwhile
            self._usual = b""
