"""`ringcast nodes`, `channels` and `up`, as a person or a script uses them."""

import contextlib
import json
import os
import signal
import subprocess

import numpy as np
import pytest
from processes import RINGCAST, run_ringcast
from processes import said_by_ringcast as run

import ringcast


def test_nodes_of_a_mesh(make_mesh, eventually):
    a, b = make_mesh(2)
    where = ("--socket", a.daemon.socket_path, "--no-start")
    shown = [line.split() for line in run("nodes", *where).splitlines()]
    assert [line[0] for line in shown] == ["node", "a", "b"]
    rows = json.loads(run("nodes", "--json", *where))
    assert [(row["name"], row["state"], row["me"]) for row in rows] == [("a", "here", True), ("b", "here", False)]
    b.kill()
    eventually(lambda: {node.name: node.state for node in a.session.nodes()}["b"] == "gone")
    assert {row["name"]: row["state"] for row in json.loads(run("nodes", "--json", *where))}["b"] == "gone"


def test_a_daemon_without_a_network_is_alone(daemon, session):
    (me,) = session.nodes()
    assert (me.name, me.me, me.state) == (session.node, True, "here")
    assert session.channels() == []
    assert session.dropped() == {}
    where = ("--socket", daemon.socket_path, "--no-start")
    assert session.node in run("nodes", *where)
    assert "no channels" in run("channels", *where)
    assert json.loads(run("channels", "--json", *where)) == {"channels": [], "dropped": {}}


def test_channels_at_both_ends(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("lab/x")
    eventually(lambda: b.knows("lab/x"))
    sub = b.session.subscribe("lab/x", reliable=True, every=2, at="publisher")
    for _ in range(5):
        pub.send(b"four")
    assert [sub.recv(timeout=30).seq for _ in range(3)] == [0, 2, 4]
    for node, direction, other in ((a, "out", "b"), (b, "in", "a")):
        (row,) = json.loads(run("channels", "--json", "--socket", node.daemon.socket_path))["channels"]
        assert (row["direction"], row["node"], row["tag"]) == (direction, other, "lab/x")
        assert (row["transport"], row["every"], row["reliable"]) == ("tcp", 2, True)
        assert (row["messages"], row["lost"]) == (3, 0)


def test_channels_say_who_receives(make_mesh, eventually):
    """In a table and as JSON: the subscriber's process where it is alone, else the daemon. A sender does not know."""
    a, b = make_mesh(2)
    pubs = [a.session.publisher(name) for name in ("lab/x", "lab/y")]
    eventually(lambda: b.knows("lab/x") and b.knows("lab/y"))
    alone, reliable = b.session.subscribe("lab/x"), b.session.subscribe("lab/y", reliable=True)

    def shown(node):
        where = ("--socket", node.daemon.socket_path, "--no-start")
        heads, *rows = [line.split() for line in run("channels", *where).splitlines() if line.strip()][:3]
        at = heads.index("receiver")
        listed = json.loads(run("channels", "--json", *where))["channels"]
        return {row[0]: row[at] for row in rows}, {row["tag"]: row["receiver"] for row in listed}

    assert shown(b) == ({"lab/x": "subscriber", "lab/y": "daemon"},) * 2
    assert shown(a) == ({"lab/x": "-", "lab/y": "-"}, {"lab/x": "", "lab/y": ""})
    with b.connect() as other, other.subscribe("lab/x"):
        assert shown(b) == ({"lab/x": "daemon", "lab/y": "daemon"},) * 2
    eventually(lambda: [row.receiver for row in b.incoming(tag="lab/x")] == ["subscriber"])
    assert shown(b)[1] == {"lab/x": "subscriber", "lab/y": "daemon"}
    for pub, sub in zip(pubs, (alone, reliable), strict=True):
        pub.send(b"x")
        assert sub.recv(timeout=30).seq == 0


def test_the_first_look_knows_the_seconds_before_it(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("lab/x")
    eventually(lambda: b.knows("lab/x"))
    sub = b.session.subscribe("lab/x")
    told = b.session.subscribe("@ringcast/b/channels")

    def published():
        pub.send(b"x")
        rows = [row for msg in told.recv_many(10, timeout=10) for row in msg.data["channels"] if row["tag"] == "lab/x"]
        return any(row["messages"] for row in rows)

    eventually(published)
    pub.send(b"x")
    assert [sub.recv(timeout=30).data for _ in range(2)] == [b"x"] * 2
    command = [*RINGCAST, "channels", "--watch", "--json", "--socket", b.daemon.socket_path, "--no-start"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        rows = json.loads(watching.stdout.readline())["channels"]
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(30) == 130
    (row,) = [row for row in rows if row["tag"] == "lab/x"]
    assert row["measured"]["hz"] > 0


def test_channels_are_watched_with_what_they_are_worth(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("lab/x")
    eventually(lambda: b.knows("lab/x"))
    sub = b.session.subscribe("lab/x", transport="lossy+multicast:loss=30%,seed=3")
    where = ("--socket", b.daemon.socket_path, "--no-start")
    command = [*RINGCAST, "channels", "--watch", "0.01", *where]
    with (
        subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True) as objects,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tables,
    ):
        found = {}

        def is_measured():
            nonlocal found
            for _ in range(20):
                pub.send(bytes(100))
            (row,) = json.loads(objects.stdout.readline())["channels"]
            found = row["measured"]
            if any(found[name] is None for name in ("hz", "relate2_burst")) or not 0 < found["loss"] < 1:
                return False
            # Headers of 48 bytes, and what the lossy stage took away, for 100 bytes. What is sent in one reading and
            # arrives in the next makes single readings larger or smaller.
            return 0.48 <= found["overhead"] < 3

        eventually(is_measured)
        shown = [tables.stdout.readline() for _ in range(8)]
        for watching in (objects, tables):
            watching.send_signal(signal.SIGINT)
            watching.stdout.read()
            assert watching.wait(30) == 130
    assert found["relate"] == pytest.approx(found["latency_s"] / (1 - found["loss"]))
    assert found["relate2"] == pytest.approx(found["latency_s"] * (100 * found["loss"] + 1))
    assert found["relate2_net"] == pytest.approx(found["relate2"] * found["bandwidth"])
    assert all(len(line) <= 100 for line in shown)
    assert [line.split()[-1] for line in shown[::2]] == ["overhead", "2Burst"] * 2
    sub.close()


@pytest.mark.parametrize("verb", ["nodes", "channels"])
def test_watching_gives_a_stream_of_objects(make_mesh, verb):
    a, _ = make_mesh(2)
    command = [*RINGCAST, verb, "--watch", "0.01", "--json", "--socket", a.daemon.socket_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        seen = [json.loads(watching.stdout.readline()) for _ in range(3)]
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(30) == 130
    assert all(verb in row for row in seen)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_joins_nodes_and_leaves_nothing_behind(gone, eventually, number):
    with subprocess.Popen([*RINGCAST, "up", "--nodes", "2", "--json"], stdout=subprocess.PIPE, text=True) as up:
        text = ""
        while not text.endswith("\n}\n"):
            line = up.stdout.readline()
            assert line, text  # it ended
            text += line
        nodes = json.loads(text)["nodes"]
        assert [node["name"] for node in nodes] == ["node0", "node1"]
        one, two = (ringcast.connect(node["socket"], start=False) for node in nodes)
        with one, two:
            pub = one.publisher("hello")
            eventually(lambda: any(row.publishers for row in two.tags("hello")))
            sub = two.subscribe("hello")
            pub.send(b"there")
            assert sub.recv(timeout=30).data == b"there"
        up.send_signal(number)
        assert up.wait(30) == 0
    assert all(gone(node["pid"]) for node in nodes)
    assert not os.path.exists(os.path.dirname(nodes[0]["socket"]))


def test_up_for_some_time_says_how_to_use_it():
    said = run("up", "--nodes", "2", "--seconds", "0.1", "--prefix", "rover")
    assert "# rover0 at 127.0.0.1:" in said
    assert said.count("export RINGCAST_SOCKET=") == 2


def test_set_moves_a_proxy_and_shows_what_is_set(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("cam/front")
    eventually(lambda: b.knows("cam/front"))
    sub = b.session.subscribe("cam/front", every=2)
    where = ("--socket", b.daemon.socket_path, "--no-start")
    assert "nothing is set" in run("set", "cam/front", *where)
    run("set", "cam/front", "--at", "subscriber", "--transport", "tcp", *where)
    eventually(lambda: [(row.every, row.transport) for row in b.incoming()] == [(1, "tcp")])
    shown = json.loads(run("set", "cam/front", "--json", *where))
    assert shown == {"tag": "cam/front", "settings": {"": {"at": "subscriber", "transport": "tcp"}}}
    run("set", "cam/front", "--proxy", "auto", "--transport", "", *where)  # as --at was called
    eventually(lambda: [(row.every, row.transport) for row in b.incoming()] == [(2, "nak")])
    for _ in range(3):
        pub.send(b"x")
    assert [sub.recv(timeout=30).seq for _ in range(2)] == [0, 2]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("cam/front", "--at", "moon"), 2, "--at is 'publisher', 'subscriber', 'node:NAME' or 'auto'"),
        (("cam/front", "--node", "b"), 2, "say also what"),
        (("cam/front", "--at", "node:moon"), 1, "there is no such node now"),
        (("cam/front", "--transport", "pigeon"), 1, "pigeon"),
        (("no/such/tag",), 1, "no/such/tag"),
    ],
)
def test_set_misused(daemon, session, words, code, said):
    session.tag("cam/front")
    done = run_ringcast("set", *words, "--socket", daemon.socket_path, "--no-start")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_sub_by_another_transport(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("lab/x")
    eventually(lambda: b.knows("lab/x"))
    where = ("--socket", b.daemon.socket_path, "--no-start")
    command = [*RINGCAST, "sub", "lab/x", "--transport", "tcp", "--count", "2", *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sub, contextlib.ExitStack() as stack:
        stack.callback(sub.kill)  # or a test that fails would wait for it
        eventually(lambda: [row.transport for row in b.incoming()] == ["tcp"])
        pub.wait_for_subscribers(1, 30)
        pub.send(b"one")
        pub.send(b"two")
        out, _ = sub.communicate(timeout=30)
    assert [line.split()[-1] for line in out.splitlines()] == ["one", "two"]
    assert sub.returncode == 0


def test_pull_by_time_from_another_node(make_mesh, eventually):
    a, b = make_mesh(2)
    publishers = [a.session.publisher("lab/x") for _ in range(2)]
    eventually(lambda: b.knows("lab/x", 2))
    for number in range(6):
        publishers[number % 2].send(b"%d" % number)
    where = ("--json", "--socket", b.daemon.socket_path, "--no-start")
    rows = json.loads(run("pull", "lab/x", "--since", "1h", *where))
    assert [row["value"] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    second, fourth = (str(rows[number]["sent_ns"]) for number in (1, 3))
    found = json.loads(run("pull", "lab/x", "--between", second, fourth, *where))
    assert [row["value"] for row in found] == ["1", "2", "3"]
    assert json.loads(run("pull", "lab/x", "--before", fourth, *where))["value"] == "3"


def test_delete_removes_a_tag_from_every_node(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("lab/x")
    eventually(lambda: b.knows("lab/x"))
    where = ("--socket", b.daemon.socket_path, "--no-start")
    refused = run_ringcast("delete", "lab/x", *where)
    assert refused.returncode == 1
    assert refused.stderr == (
        "ringcast: tag 'lab/x' has 1 publisher(s) and 0 subscriber(s); stop them, or use --force\n"
    )
    assert run("delete", "lab/x", "--force", *where) == "deleted lab/x\n"
    eventually(lambda: not a.session.tags("lab/x") and not b.session.tags("lab/x"))
    with pytest.raises(ringcast.TagDestroyed):
        pub.send(b"x")
    a.session.tag("lab/y")
    eventually(lambda: b.session.tags("lab/y"))
    assert json.loads(run("delete", "lab/y", "--json", *where)) == {"deleted": "lab/y"}
    eventually(lambda: not a.session.tags("lab/y"))


def test_less_of_a_camera_from_the_command_line(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("cam", codec="numpy")
    eventually(lambda: b.knows("cam"))
    where = ("--socket", b.daemon.socket_path, "--no-start")
    for _ in range(5):
        pub.send(np.ones((4, 6)))
    words = ("sub", "cam", "--start", "earliest", "--size", "3x2", "--every", "2", "--count", "3", "--json", *where)
    rows = [json.loads(line) for line in run(*words).splitlines()]
    assert [(row["seq"], row["shape"], row["lost"]) for row in rows] == [(i, [2, 3], 0) for i in (0, 2, 4)]
    pulled = json.loads(run("pull", "cam", "--size", "2x1", "--at", "node:a", "--json", *where))
    assert (pulled["seq"], pulled["value"]) == (4, [[1.0, 1.0]])
    sub = b.session.subscribe("cam", size=(3, 2), rate_hz=1e6)
    (row,) = json.loads(run("channels", "--json", *where))["channels"]
    assert (row["size"], row["rate_hz"]) == ([3, 2], 1e6)
    heads, shown = [line.split() for line in run("channels", *where).splitlines()[:2]]
    assert shown[heads.index("size") + 1] == "3x2"  # a rate is two words
    sub.close()


@pytest.mark.parametrize(
    "words", [("--size", "3"), ("--size", "0x3"), ("--at", "moon"), ("--every", "2", "--rate", "5")]
)
def test_scaling_that_cannot_be_meant(words):
    done = run_ringcast("sub", "cam", *words)
    assert done.returncode == 2
    assert words[0] in done.stderr
