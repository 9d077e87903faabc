"""A stage on a node in between works as urgently as its channel: its first hop has that class, and its process the
schedule, where the kernel allows it."""

import threading
from pathlib import Path

import numpy as np

from ringcast.errors import QosMismatch
from ringcast.transport.urgent import scheduling

FRAME = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)


def granted(text):
    try:
        scheduling.check(text, "here")
    except QosMismatch:
        return False
    return True


def stages(pid):
    """Processes that scale for a daemon."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"ringcast.scaling.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def test_its_first_hop_has_the_class_and_its_process_the_schedule(make_mesh, eventually):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("cam", codec="image", depth=64)
    eventually(lambda: b.knows("cam") and c.knows("cam"))
    sub = b.session.subscribe("cam", size=(4, 4), at="node:c", priority="high fifo:20")
    eventually(lambda: [row.priority for row in c.incoming(tag="cam")] == ["high fifo:20"])
    eventually(lambda: [row.priority for row in b.incoming(tag="cam")] == ["high fifo:20"])
    stop = threading.Event()

    def send():
        while not stop.wait(0.01):
            pub.send(FRAME)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        assert sub.recv(timeout=60).data.shape == (4, 4, 3)
        daemon = c.daemon.process.pid
        if granted("fifo:20"):
            eventually(lambda: [scheduling.of(pid) for pid in stages(daemon)] == ["fifo:20"])
        else:
            assert [scheduling.of(pid) for pid in stages(daemon)] == ["other"]
        # Another priority is another stage, which takes over; back to none, its process has none.
        sub.prioritise(priority="", sched="")
        eventually(lambda: [row.priority for row in c.incoming(tag="cam")] == [""])
        eventually(lambda: [scheduling.of(pid) for pid in stages(daemon)] == ["other"])
        assert sub.recv(timeout=60).data.shape == (4, 4, 3)
    finally:
        stop.set()
        sender.join()
