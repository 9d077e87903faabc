from types import SimpleNamespace

import pytest

from ringcast import _core
from ringcast.daemon.stages.derivation import oldest_seq


@pytest.fixture
def writer():
    writer = _core.RingWriter(depth=4, capacity_bytes=4096)
    yield writer
    writer.close()


class Ring:
    """Of a publisher that sends the moment somebody has looked."""

    def __init__(self, writer, busy):
        self._writer = writer
        self._busy = busy
        self.files = (SimpleNamespace(open=lambda: SimpleNamespace(fileno=lambda: writer.ring_fd)),)
        self.row = SimpleNamespace(depth=writer.depth, capacity_bytes=writer.capacity_bytes)
        self.ring = writer.incarnation

    @property
    def next_seq(self):
        following = self._writer.next_seq
        if self._busy:
            self._writer.send(b"x")
        return following


@pytest.mark.parametrize(("sent", "oldest"), [(0, 0), (1, 0), (4, 0), (6, 2)])
def test_the_oldest_held_or_the_next(writer, sent, oldest):
    for _ in range(sent):
        writer.send(b"x")
    assert oldest_seq(Ring(writer, busy=False)) == oldest


def test_the_first_message_comes_while_it_is_looked_for(writer):
    assert oldest_seq(Ring(writer, busy=True)) == 0
