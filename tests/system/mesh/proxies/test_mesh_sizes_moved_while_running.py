"""A proxy that scales in space moves while frames flow: every frame comes once, in order, at the size asked for."""

import threading

import numpy as np
import pytest

FRAME = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
PLACES = ["subscriber", "node:c", "publisher", "node:b", "publisher"]


@pytest.mark.parametrize("reliable", [False, True])
def test_a_camera_is_scaled_elsewhere(make_mesh, eventually, reliable):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("cam", codec="image", depth=2048, max_wait_s=30)
    eventually(lambda: b.knows("cam") and c.knows("cam"))
    sub = b.session.subscribe("cam", size=(4, 4), every=2, reliable=reliable, at="publisher")
    stop = threading.Event()

    def send():
        while not stop.wait(0.002):
            pub.send(FRAME)

    got = []

    def take():
        while not got or got[-1].event_ns != 1:
            got.append(sub.recv(timeout=60))

    sender, taker = threading.Thread(target=send), threading.Thread(target=take)
    sender.start()
    taker.start()
    for place in PLACES:
        sub.move(at=place)
    stop.set()
    sender.join()
    while (pub.send(FRAME) + 1) % 2:
        pass
    pub.send(FRAME, event_ns=1)
    taker.join()
    numbers = [msg.seq for msg in got]
    due = range(numbers[0], numbers[-1] + 1, 2)
    assert numbers == sorted(set(numbers) & set(due))  # none twice, out of order, or not asked for
    missed = len(due) - len(numbers)
    assert missed == sum(msg.lost for msg in got)
    # Of one that is not reliable, what was on its way when its stage ended may be lost.
    assert missed <= (0 if reliable else len(PLACES))
    assert {msg.data.shape for msg in got} == {(4, 4, 3)}


def test_local_frames_are_scaled_elsewhere(make_mesh):
    (a,) = make_mesh(1)
    pub = a.session.publisher("cam", codec="image", depth=2048)
    sub = a.session.subscribe("cam", size=(4, 4), at="publisher")
    seen = []
    for place in ("subscriber", "node:a", "publisher", "subscriber"):
        for _ in range(3):
            pub.send(FRAME)
        sub.move(at=place)
        seen += [sub.recv(timeout=60) for _ in range(3)]
    assert [(msg.seq, msg.lost, msg.data.shape) for msg in seen] == [(i, 0, (4, 4, 3)) for i in range(12)]
