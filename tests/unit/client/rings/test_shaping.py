"""A declared publisher keeps to what it declared, with the same calls as others."""

import threading
from types import SimpleNamespace

import pytest

from ringcast.client.rings import shaping as module
from ringcast.client.rings.shaping import DROPPED, Shaping
from ringcast.errors import MessageTooLarge, WouldBlock
from ringcast.model.declared import Declared


class Ring:
    def __init__(self):
        self.sent = []

    def send(self, body, event_ns=None, discardable=False, priority=None):
        self.sent.append((bytes(body), event_ns))
        return len(self.sent)

    send_nowait = send

    def reserve(self, length):
        return length


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=10**9, slept=lambda: None)

    def sleep(seconds):
        made.slept()
        made.now += round(seconds * 1e9)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: made.now, sleep=sleep))
    return made


def shaping(ring, on_excess="wait"):
    return Shaping(ring, "t", Declared(period_s=0.01, max_bytes=8), on_excess, None)


def test_many_messages_have_the_event_time_that_was_given(clock):
    ring = Ring()
    assert shaping(ring).send_many([b"a", b"b"], event_ns=7) == 2
    assert ring.sent == [(b"a", 7), (b"b", 7)]
    assert clock.now == 10**9 + 10**7
    with pytest.raises(ValueError, match="nothing"):
        shaping(ring).send_many([])


def test_who_does_not_wait_is_told_while_another_thread_does(clock):
    ring = Ring()
    one, said = shaping(ring), []

    def beside():
        for attempt in (lambda: one.send(b"far too long"), lambda: one.send_nowait(b"b")):
            try:
                attempt()
            except (MessageTooLarge, WouldBlock) as exc:
                said.append(type(exc))

    def slept():
        clock.slept = lambda: None
        other = threading.Thread(target=beside, daemon=True)
        other.start()
        other.join(5)

    clock.slept = slept
    one.send(b"a")
    one.send(b"b")
    assert said == [MessageTooLarge, WouldBlock]
    assert one.waited == 1


def test_a_message_that_is_dropped_is_dropped_while_another_thread_waits_for_room(clock):
    ring = Ring()
    one, got = shaping(ring, "drop"), []

    def slept():
        other = threading.Thread(target=lambda: got.append(one.send(b"x")), daemon=True)
        other.start()
        other.join(5)

    clock.slept = slept
    one.send(b"a")
    assert one.reserve(4) == 4
    assert got == [DROPPED]
    assert one.dropped == 1
