"""Subscribers leave the transport to the mesh: it is chosen by what their nodes lose, and again when that changes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import ringcast
from ringcast.adapt.judging import FOLDER
from ringcast.client.mesh.administration import load_model
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import star

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

TAG, ASKED, LEARNED = "chosen", "auto:deadline=1us,loss=2%", "auto:p99,loss=2%"
"""No model knows that deadline: at first a rule decides. Nothing can be in time, so what waits least is best."""
PERIOD_S = 0.005


class Stream:
    """A publisher that sends numbers until it is stopped, and what a subscriber got of them."""

    def __init__(self, mesh: MeshNodes, names: list[str]) -> None:
        self.mesh, (self.home, *self.others) = mesh, names
        self._ended = threading.Event()
        self.publisher = mesh.sessions[self.home].publisher(TAG, depth=4096)
        mesh.wait_for_publisher(TAG)
        self.subscribers = [mesh.sessions[name].subscribe(TAG, transport=ASKED) for name in self.others]
        self.received: list[list[ringcast.Message]] = [[] for _ in self.subscribers]
        self._threads = [threading.Thread(target=self._send)] + [
            threading.Thread(target=self._read, args=pair) for pair in zip(self.subscribers, self.received, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self.publisher.send(b"x" * 64)

    def _read(self, subscriber: ringcast.Subscriber, into: list[ringcast.Message]) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                into += subscriber.recv_many(64, timeout=0.2)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def chosen(self, asked: str = ASKED) -> str:
        (row,) = self.mesh.sessions[self.others[-1]].tags(TAG)
        return row.chosen[asked].transport if asked in row.chosen else ""

    def pinned(self) -> str:
        """What an administrator has them use instead of what they left to the mesh."""
        (row,) = self.mesh.sessions[self.others[-1]].tags(TAG)
        return row.chosen[ASKED].pinned if ASKED in row.chosen else ""

    def chosen_by(self, asked: str) -> str:
        """Which model or rule ranks, as it is told where a channel of the tag is."""
        channels = self.mesh.sessions[self.others[-1]].channels()
        found = [one.by for row in channels if row.tag == TAG for one in row.choices if one.asked == asked]
        return found[0] if found else ""

    def carried_by(self) -> set[str]:
        channels = [row for name in self.others for row in self.mesh.sessions[name].channels()]
        return {row.transport for row in channels if row.tag == TAG and row.direction == "in"}


@pytest.fixture
def stream() -> Iterator[Stream]:
    with Testbed(star(3)) as bed:
        names = [node.name for node in bed.nodes if node.kind == "host"]
        with MeshNodes(bed, names) as mesh:
            stream = Stream(mesh, names)
            try:
                yield stream
            finally:
                stream.close()


def assert_it_is_explained(stream: Stream, eventually: Callable[..., None]) -> None:
    """On a node that does not keep the tag: what its channel meets, and from what its transport was chosen."""
    node = stream.others[0]

    def seen() -> list[ringcast.ChannelStatus]:
        rows = stream.mesh.sessions[node].channels()
        return [row for row in rows if row.tag == TAG and row.direction == "in" and row.environment and row.choices]

    eventually(lambda: any(row.environment.loss_percent for row in seen()))
    (row,) = seen()
    assert row.environment is not None
    assert (row.environment.receivers, row.environment.payload_bytes) == (2, 64.0)
    assert row.environment.rate_hz > 0
    assert row.environment.cpu_left_percent is not None
    (choice,) = row.choices
    assert (choice.asked, choice.transport) == (ASKED, "nak")
    assert "rule" in choice.by
    assert "% loss" in choice.environment
    assert choice.candidates[0][1] == 1.0 <= choice.candidates[-1][1]
    assert "nak" in dict(choice.candidates)
    assert choice.unit == "%"
    assert choice.values == pytest.approx([100.0] * len(choice.candidates)), "all of them are late"
    told = subprocess.run(
        [sys.executable, "-m", "ringcast", "channels", "--why"], capture_output=True, text=True, check=True,
        env=stream.mesh.bed.node(node).environment,
    ).stdout  # fmt: skip
    assert f"{TAG}, {ASKED}: by nak for" in told
    assert "lost before repair" in told
    assert "times the best" in told
    telemetry = stream.mesh.sessions[node].subscribe(f"@ringcast/{node}/channels")
    published = telemetry.recv(timeout=60).data["channels"]
    assert any(one["environment"] and one["environment"]["rate_hz"] > 0 for one in published if one["tag"] == TAG)
    telemetry.close()


def test_by_the_loss_and_by_a_model_and_pinned(stream: Stream, eventually: Callable[..., None], tmp_path: Path) -> None:
    bed, mesh = stream.mesh.bed, stream.mesh
    eventually(lambda: stream.chosen() == "udp" and stream.carried_by() == {"udp"})

    for link in bed.links:
        link.set_loss("5%")
    eventually(lambda: stream.chosen() == "nak" and stream.carried_by() == {"nak"})
    told = subprocess.run(
        [sys.executable, "-m", "ringcast", "adapt", "--json"], capture_output=True, text=True, check=True,
        env=bed.node(stream.others[0]).environment,
    )  # fmt: skip
    (choice,) = json.loads(told.stdout)
    assert (choice["tag"], choice["asked"], choice["transport"]) == (TAG, ASKED, "nak")
    assert "rule" in choice["why"]
    assert "% loss" in choice["why"]

    assert_it_is_explained(stream, eventually)

    # Loaded on a node that does not keep the tag, it is used by the one that does.
    mesh.sessions[stream.home].set_channel(TAG, transport=LEARNED)
    eventually(lambda: stream.chosen_by(LEARNED).startswith("the neural for p99"))
    model = json.loads((FOLDER / "latency_p99-in-order.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**model, "family": "loaded"}))
    assert load_model(mesh.sessions[stream.others[0]], tmp_path / "model.json") == []
    eventually(lambda: stream.chosen_by(LEARNED) == "the loaded for p99")
    eventually(lambda: stream.carried_by() == {stream.chosen(LEARNED)})

    (tmp_path / "worse.json").write_text(json.dumps({**model, "metric": "relate2 in order"}))
    with pytest.raises(ringcast.QosMismatch, match="worse than the model in force"):
        load_model(mesh.sessions[stream.others[0]], tmp_path / "worse.json")

    choices = mesh.sessions[stream.others[0]].subscribe(f"@ringcast/{stream.home}/choices")
    told = choices.recv(timeout=60).data
    # On a busy machine a node may answer too late for one look.
    while (told["asked"], told["receivers"]) != (LEARNED, 2):
        told = choices.recv(timeout=60).data
    assert told["tag"] == TAG
    assert told["messages"] > 0

    mesh.sessions[stream.home].set_channel(TAG, transport="tcp")
    eventually(lambda: stream.carried_by() == {"tcp"})
    while told["transport"] != "tcp":
        told = choices.recv(timeout=60).data
    eventually(lambda: stream.pinned() == "tcp")
    # Only the sender's kernel knows what tcp lost.
    sent = mesh.sessions[stream.home]
    eventually(lambda: any(row.counters.get("resent", 0) > 0 for row in sent.channels() if row.tag == TAG))
    for link in bed.links:
        link.set_loss(None)
    before = [len(got) for got in stream.received]
    eventually(lambda: all(len(got) > n + 100 for got, n in zip(stream.received, before, strict=True)))
    stream.close()
    for got in stream.received:
        numbers = [message.seq for message in got]
        assert numbers == sorted(set(numbers)), "in order, and nothing twice"
        assert numbers[-1] - numbers[0] + 1 - len(numbers) == sum(message.lost for message in got[1:])
