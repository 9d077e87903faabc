"""A plug-in's scaler that crashes: the daemon goes on, says so, and begins the stage again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from plug_ins import install

import ringcast
from ringcast.scaling import registry

PLUG_IN = """
import os
import signal


class Fragile:
    name = "fragile"
    codecs = frozenset({"bytes"})

    def scale(self, payload, attributes, size):
        data = bytes(payload)
        if data == b"segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if data == b"mistake":
            raise ZeroDivisionError("of the plug-in")
        return data[: size[0]]

    def schema(self, schema, size):
        return schema
"""


@pytest.fixture
def fragile(tmp_path, monkeypatch):
    """A scaler that this process, and the daemons and publishers it starts, find installed."""
    packages = tmp_path / "packages"
    install(packages, "fragile", PLUG_IN, "ringcast.scalers", "fragile = fragile:Fragile")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.syspath_prepend(str(packages))
    registry._by_codec.cache_clear()
    yield
    registry._by_codec.cache_clear()


def seen(messages):
    return [(msg.seq, msg.lost, msg.data) for msg in messages]


@pytest.mark.usefixtures("fragile")
def test_a_stage_that_crashes_is_begun_again_and_passes_over_what_kills_it(make_daemon, capfd, take):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("words")
        sub = session.subscribe("words", size=(3, 1), at="node:here")
        for word in (b"alpha", b"segfault", b"gamma", b"delta"):
            pub.send(word)
        assert seen(take(sub, b"del")) == [(0, 0, b"alp"), (2, 1, b"gam"), (3, 0, b"del")]
        assert session.status().node == "here"
    daemon.stop()
    said = capfd.readouterr().err
    assert len(re.findall(r"stage of size \(3, 1\) on words is gone: its process was ended by SIGSEGV", said)) == 2


@pytest.mark.usefixtures("fragile")
def test_a_stage_between_two_nodes_crashes(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("words")
    eventually(lambda: b.knows("words") and c.knows("words"))
    sub = b.session.subscribe("words", size=(3, 1), at="node:c", every=2)
    for i in range(9):
        pub.send(b"segfault" if i == 4 else b"word%d" % i)
        if i == 2:
            assert [sub.recv(timeout=30).seq for _ in range(2)] == [0, 2]
    pub.send(b"-")
    pub.send(b"end")
    assert [(msg.seq, msg.lost) for msg in take(sub, b"end")] == [(6, 1), (8, 0), (10, 0)]


@pytest.mark.usefixtures("fragile")
@pytest.mark.parametrize("at", ["publisher", "node:here"])
def test_a_scaler_that_raises_loses_that_message_only(make_daemon, at, take):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("words")
        sub = session.subscribe("words", size=(3, 1), at=at)
        assert [pub.send(word) for word in (b"alpha", b"mistake", b"gamma")] == [0, 1, 2]
        assert seen(take(sub, b"gam")) == [(0, 0, b"alp"), (2, 1, b"gam")]


@pytest.mark.usefixtures("fragile")
def test_a_pull_that_crashes_its_scaler_says_so_and_the_next_does_not(make_daemon):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("words")
        for word in (b"alpha", b"segfault", b"mistake"):
            pub.send(word)
        history = session.tag("words").history(at="node:here", size=(2, 1))
        assert history.at(0).data == b"al"
        with pytest.raises(ringcast.BrokenError, match="crashed"):
            history.at(1)
        with pytest.raises(ringcast.errors.ScaleError, match="of the plug-in"):
            history.at(2)
        assert history.at(0).data == b"al"


@pytest.mark.usefixtures("fragile")
def test_a_publisher_without_the_scaler_leaves_it_to_the_subscriber(make_daemon, run_program, monkeypatch, capfd):
    daemon = make_daemon("--name", "here")
    monkeypatch.delenv("PYTHONPATH")
    source = """
        import ringcast
        with ringcast.connect() as session:
            pub = session.publisher("words")
            print("here")
            while line := input():
                pub.send(line.encode())
        """
    program = run_program(source, daemon.socket_path)
    program.expect("here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        sub, second = (session.subscribe("words", size=(3, 1)) for _ in range(2))
        other = session.subscribe("words", size=(3, 1), at="node:here")
        program.tell("alpha")
        assert [reader.recv(timeout=30).data for reader in (sub, second, other)] == [b"alp"] * 3
        sub.fileno()  # another way of being woken, of the plain ring too
        program.tell("beta")
        assert sub.recv(timeout=30).data == b"bet"
    program.tell()
    program.end()
    daemon.stop()
    assert "scale for themselves" in capfd.readouterr().err


def children(pid):
    return {int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_daemon_that_ends_leaves_no_process_behind(make_daemon, gone, end):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("field", codec="numpy")
        sub = session.subscribe("field", size=(1, 1), at="node:here")
        pub.send(np.ones((2, 2)))
        assert sub.recv(timeout=30).data.tolist() == [[1.0]]
        session.tag("field").history(at="node:here", size=(1, 1)).latest()
        workers = children(daemon.process.pid)
        assert len(workers) == 2
        getattr(daemon, end)()
    assert all(gone(pid) for pid in workers)
