"""Two Python processes with a UDP socket each: what the kernel and the interpreter cost without Ringcast."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from array import array
from itertools import repeat

WAIT_S = 10.0


class Ping:
    """Asks the echo at `host` and `port`."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((host, port))
        # By socket option, because settimeout would add a poll to every call.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, array("q", [int(WAIT_S), 0]).tobytes())

    def ping(self, count: int, size: int, pause_s: float = 0.0) -> list[int]:
        """Nanoseconds of each of `count` round trips, with a pause before each. Raises OSError when one does not come
        back."""
        send, recv, clock = self._socket.send, self._socket.recv, time.perf_counter_ns
        body = bytes(size)
        samples = array("q")
        for _ in repeat(None, count):
            if pause_s:
                time.sleep(pause_s)
            start = clock()
            send(body)
            recv(65536)
            samples.append(clock() - start)
        return samples.tolist()

    def close(self) -> None:
        self._socket.close()


class Echo:
    """`tells` the port it was given."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.tells: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        with contextlib.suppress(OSError):
            body, asker = self._socket.recvfrom(65536)
            # Connected, so that the kernel looks up no address for each answer.
            self._socket.connect(asker)
            send, recv = self._socket.send, self._socket.recv
            while body:
                send(body)
                body = recv(65536)

    def close(self) -> None:
        # Wakes the thread, also from a socket that nobody ever wrote to.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(1.0)
        self._socket.close()
