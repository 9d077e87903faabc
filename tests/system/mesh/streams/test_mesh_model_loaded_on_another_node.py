"""A model is loaded on a node that neither keeps, publishes nor subscribes to what is chosen for: whoever keeps a tag
chooses by it, also a daemon that was killed and started again."""

import json
import threading
from contextlib import suppress

import pytest

from ringcast.adapt.judging import FOLDER
from ringcast.client.mesh.administration import load_model

ASKED = "auto:relate2"


class Stream:
    """A tag that a node keeps and publishes to, read on another one."""

    def __init__(self, tag, keeper, reader, eventually):
        self.tag, self.reader = tag, reader
        self._ended = threading.Event()
        self._session = keeper.connect()
        self._publisher = self._session.publisher(tag, depth=1024)
        eventually(lambda: reader.knows(tag))
        self._subscriber = reader.session.subscribe(tag, transport=ASKED)
        self._threads = [threading.Thread(target=work) for work in (self._send, self._read)]
        for thread in self._threads:
            thread.start()

    def _send(self):
        while not self._ended.wait(0.01):
            self._publisher.send(b"x" * 64)

    def _read(self):
        while not self._ended.is_set():
            with suppress(TimeoutError):
                self._subscriber.recv_many(64, timeout=0.2)

    def chosen_by(self):
        rows = self.reader.incoming(tag=self.tag)
        return {choice.by for row in rows for choice in row.choices}

    def close(self):
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._session.close()


@pytest.fixture
def opened(eventually):
    streams = []

    def stream(tag, keeper, reader):
        streams.append(Stream(tag, keeper, reader, eventually))
        return streams[-1]

    yield stream
    for one in streams:
        one.close()


def test_every_keeper_chooses_by_it_also_after_a_restart(make_mesh, opened, eventually, tmp_path):
    keeper, reader, other = nodes = make_mesh(3)
    first = opened("first", keeper, reader)
    eventually(lambda: first.chosen_by() == {"the neural for relate2"})
    model = json.loads((FOLDER / "relate2-in-order.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**model, "family": "loaded"}))
    assert load_model(other.session, tmp_path / "model.json") == []
    eventually(lambda: first.chosen_by() == {"the loaded for relate2"})

    other.kill()
    eventually(lambda: other.name not in keeper.here())
    other.restart()
    eventually(lambda: all(node.here() == {one.name for one in nodes} for node in nodes))
    second = opened("second", other, reader)
    eventually(lambda: second.chosen_by() == {"the loaded for relate2"})
