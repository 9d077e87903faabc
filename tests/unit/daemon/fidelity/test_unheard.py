"""Streams by plain udp of which nothing comes, by what their sender says when it is asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ringcast.adapt.fidelity import FALL_AFTER, Follower, Seen
from ringcast.control import service
from ringcast.control.service import AskSent, SentSoFar
from ringcast.daemon.fidelity.silence import MOST_LOOKS, Silence, Stream


class Mesh:
    """One whose other node says how far each channel is, by key."""

    def __init__(self):
        self.next_seqs = {}
        self.asked = []

    async def request(self, node, name, payload, timeout):
        assert name == service.SENT
        keys = service.decode_untrusted(payload, AskSent).keys
        self.asked.append((node, keys))
        if self.next_seqs is None:
            raise TimeoutError
        return service.encode(SentSoFar(next_seqs=[self.next_seqs.get(key) for key in keys]))


def channel(key=1, transport="udp", every=1):
    return SimpleNamespace(
        key=key, via="a", transport=transport, mirror=SimpleNamespace(next_seq=0),
        row=SimpleNamespace(info=SimpleNamespace(tag="camera")),
        ring=SimpleNamespace(came=(0, 0), unheard=0, every=every),
    )  # fmt: skip


class Town:
    """Looks when it is told to, and waits for the answers."""

    def __init__(self, *channels):
        self.channels, self.mesh, self.said = list(channels), Mesh(), []
        complaints = SimpleNamespace(warning=lambda about, text, *args: self.said.append(text % args))
        self._tasks = []
        background = SimpleNamespace(start=lambda name, task: self._tasks.append(task))
        self.silence = Silence(lambda: self.channels, self.mesh, background, complaints)
        self.silence._alarm = SimpleNamespace(within=lambda delay_s: None)

    def look(self, times=1):
        for _ in range(times):
            self.silence.look()
            while self._tasks:
                asyncio.run(self._tasks.pop())


def test_what_is_sent_and_does_not_come_is_not_heard():
    one = channel()
    town = Town(one)
    for second in range(1, 5):
        town.mesh.next_seqs[1] = 50 * second
        town.look()
    assert one.ring.unheard >= 50
    assert "firewall" in town.said[0]
    one.ring.came, one.mirror.next_seq = (1, 1), 200
    town.look()
    assert one.ring.unheard == 0


def test_a_publisher_that_sends_nothing_is_asked_ever_less_often():
    one = channel()
    town = Town(one)
    town.mesh.next_seqs[1] = 0
    town.look(200)
    assert one.ring.unheard == 0
    assert town.said == []
    assert 200 / MOST_LOOKS < len(town.mesh.asked) < 15


def test_one_message_that_was_lost_before_a_pause_is_not_silence():
    one = channel()
    town = Town(one)
    town.mesh.next_seqs[1] = 1
    town.look(20)
    assert one.ring.unheard == 0


def test_nobody_is_asked_while_messages_come_or_about_other_transports():
    one, other = channel(), channel(2, "nak")
    town = Town(one, other)
    for number in range(1, 20):
        one.ring.came = (number, number)
        town.look()
    assert town.mesh.asked == []


@pytest.mark.parametrize("said", [None, {}])
def test_a_node_that_does_not_answer_or_knows_no_such_channel_says_nothing(said):
    one = channel()
    town = Town(one)
    town.mesh.next_seqs = said
    town.look(5)
    assert one.ring.unheard == 0
    assert town.mesh.asked


def test_of_a_scaled_stream_only_messages_that_are_due_count():
    one = channel(every=10)
    town = Town(one)
    for second in range(1, 4):
        town.mesh.next_seqs[1] = 100 * second
        town.look()
    assert one.ring.unheard == 20


def test_a_message_that_comes_while_the_sender_is_asked_ends_the_silence():
    stream = Stream()
    assert not stream.looks_silent(0)
    assert stream.looks_silent(0)
    assert stream.answered(0, 5) == 0
    assert stream.answered(0, 9) == 5
    assert stream.answered(1, 12) == 0


def test_a_range_falls_by_it_and_says_why():
    follower = Follower([50.0, 20.0, 5.0])
    for _ in range(FALL_AFTER):
        follower.look(Seen(0, 0, 0, 0.0, unheard=30))
    assert follower.step == 2
    assert "nothing came of the last 30 messages" in follower.why
