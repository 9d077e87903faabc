"""Python processes with a UDP socket each, one to one or by multicast: what the kernel and the interpreter cost without
Ringcast."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from array import array
from functools import partial
from itertools import repeat

WAIT_S = 10.0
GROUP, PORT = "239.255.77.1", 7_499
_STAMP = struct.Struct("<qq")
"""The number of a message, and when it was sent, UTC in nanoseconds."""


def _polled(of: socket.socket, size: int) -> bytes:
    """As `recv`, without sleeping."""
    while True:
        try:
            return of.recv(size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue


class Ping:
    """Asks the echo at `host` and `port`."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((host, port))
        # By socket option, because settimeout would add a poll to every call.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, array("q", [int(WAIT_S), 0]).tobytes())

    def ping(self, count: int, size: int, pause_s: float = 0.0, poll: bool = False) -> list[int]:
        """Nanoseconds of each of `count` round trips, with a pause before each; with `poll`, waiting without sleeping.
        Raises OSError when one does not come back."""
        send, clock = self._socket.send, time.perf_counter_ns
        recv = partial(_polled, self._socket) if poll else self._socket.recv
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

    def __init__(self, host: str, poll: bool = False) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._poll = poll
        self.tells: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        with contextlib.suppress(OSError):
            body, asker = self._socket.recvfrom(65536)
            # Connected, so that the kernel looks up no address for each answer.
            self._socket.connect(asker)
            send, recv = self._socket.send, partial(_polled, self._socket) if self._poll else self._socket.recv
            while body:
                send(body)
                body = recv(65536)

    def close(self) -> None:
        # Wakes the thread, also from a socket that nobody ever wrote to.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(1.0)
        self._socket.close()


class Multicaster:
    """Sends to all `Listener`s at a steady rate. `address` is of the interface to send by."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        self._socket.connect((GROUP, PORT))
        self._sent = 0

    def publish(self, count: int, rate_hz: float, size: int) -> None:
        """Raises OSError."""
        send, gap_ns, begun = self._socket.send, round(1e9 / rate_hz), time.monotonic_ns()
        rest = bytes(max(size - _STAMP.size, 0))
        for number in range(count):
            if (left := begun + number * gap_ns - time.monotonic_ns()) > 0:
                time.sleep(left * 1e-9)
            send(_STAMP.pack(self._sent, time.time_ns()) + rest)
            self._sent += 1

    def close(self) -> None:
        self._socket.close()


class Listener:
    """Records how long messages took. `address` is of the interface to receive by."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((GROUP, PORT))
        member = socket.inet_aton(GROUP) + socket.inet_aton(address)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)

    def record(self, last: int, limit_s: float) -> dict[str, list[int]]:
        """Up to the message numbered `last`: `seqs`, and the `latencies_ns` of them."""
        seqs, latencies = array("q"), array("q")
        # By socket option, because settimeout would add a poll to every call.
        whole = array("q", [max(int(limit_s), 1), 0]).tobytes()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, whole)
        with contextlib.suppress(BlockingIOError):
            while not seqs or seqs[-1] < last:
                data = self._socket.recv(65_536)
                now = time.time_ns()
                number, sent_ns = _STAMP.unpack_from(data)
                seqs.append(number)
                latencies.append(now - sent_ns)
        return {"seqs": seqs.tolist(), "latencies_ns": latencies.tolist()}

    def close(self) -> None:
        self._socket.close()
