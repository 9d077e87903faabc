"""While clients flood both daemons with operations on tags, a critical stream goes on: its messages pass no daemon's
loop, so they arrive while operations are still to be done."""

import threading

import pytest

import ringcast
from ringcast.errors import RingcastError

MESSAGES = 300
FLOODERS = 3


class Flood:
    """Clients that open and destroy tags all the time; `done` counts, `waiting` is how many wait for an answer now."""

    def __init__(self, socket_path):
        self.done = self.waiting = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(socket_path, i)) for i in range(FLOODERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, socket_path, number):
        with ringcast.connect(socket_path, start=False) as session:
            at = 0
            while not self._stop.is_set():
                at += 1
                self._count(1)
                try:
                    tag = session.tag(f"flood/{number}/{at % 50}")
                    tag.destroy(force=True)
                    session.tags("**")
                except RingcastError:
                    pass  # another one destroyed it
                finally:
                    self._count(-1)

    def _count(self, by):
        with self._lock:
            self.waiting += by
            self.done += by < 0

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("transport", ["nak", "tcp"])
def test_a_critical_stream_beside_it(make_mesh, eventually, transport):
    a, b = make_mesh(2)
    pub = a.session.publisher("arm", depth=4096)
    eventually(lambda: b.knows("arm"))
    sub = b.session.subscribe("arm", transport=transport, priority="critical fifo:20")
    eventually(lambda: [row.priority for row in b.incoming(tag="arm")] == ["critical fifo:20"])
    floods = [Flood(node.daemon.socket_path) for node in (a, b)]
    try:
        eventually(lambda: all(flood.done > FLOODERS for flood in floods))
        before = sum(flood.done for flood in floods)
        beside = 0
        for number in range(MESSAGES):
            pub.send(b"%d" % number)
            message = sub.recv(timeout=30)
            assert (message.data, message.lost) == (b"%d" % number, 0)
            beside += any(flood.waiting for flood in floods)
        assert beside > 0.9 * MESSAGES, "operations were waiting while the messages passed"
        eventually(lambda: sum(flood.done for flood in floods) > before)
    finally:
        for flood in floods:
            flood.stop()
