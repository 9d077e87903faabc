"""Nodes with identities: every stream between them is sealed, by whichever transport."""

from __future__ import annotations

import json

import pytest
from addresses import free_addresses
from processes import run_ringcast

import ringcast
from ringcast.security.authority import Authority

TRANSPORTS = ["udp", "tcp", "nak", "multicast+nak", "lateral+nak:r=4,c=3", "parity+nak", "ack"]


@pytest.fixture
def closed(make_daemon, tmp_path, eventually):
    """Starts a mesh with identities; its sessions by the order of the names. a is the authority."""
    sessions = []

    def restart(name):
        daemon, options = start.daemons[name]
        daemon.kill()
        daemon.start(*options)

    def start(names):
        made = Authority.init(tmp_path / "a", "test", "a")
        for name in names[1:]:
            made.equip(tmp_path / name, name)
            for file in ("authority.pem", "revoked.pem"):
                (tmp_path / name / file).write_bytes((tmp_path / "a" / file).read_bytes())
        where = dict(zip(names, free_addresses(len(names)), strict=True))
        for name in names:
            peers = [word for other in names if other != name for word in ("--peer", where[other])]
            options = ["--listen", where[name], "--no-scout", *peers, "--identity", str(tmp_path / name)]
            daemon = make_daemon(*options)
            sessions.append(ringcast.connect(socket=daemon.socket_path, start=False))
            sessions[-1].daemon_socket = daemon.socket_path
            start.daemons[name] = daemon, options
        eventually(lambda: all(sum(node.state == "here" for node in s.nodes()) == len(names) for s in sessions))
        return sessions

    start.daemons, start.again = {}, restart
    yield start
    for session in sessions:
        session.close()


@pytest.fixture
def nodes(closed):
    """Sessions with a and b."""
    return closed("ab")


def rows(session, tag):
    return [row for row in session.channels() if row.tag == tag]


def test_every_transport_is_sealed_and_carries_everything(nodes, eventually, take):
    a, b = nodes
    tags = [f"sealed/{i}" for i in range(len(TRANSPORTS))]
    pubs = [a.publisher(tag, depth=1024) for tag in tags]
    eventually(lambda: {tag.name for tag in b.tags("sealed/**") if tag.publishers} >= set(tags))
    subs = [b.subscribe(tag, transport=name) for tag, name in zip(tags, TRANSPORTS, strict=True)]
    for pub in pubs:
        for i in range(300):
            pub.send(b"%d" % i)
        pub.send(bytes(200_000))
        pub.send(b"end")
    for name, pub, sub in zip(TRANSPORTS, pubs, subs, strict=True):
        if name == "udp":  # promises nothing: the last one is sent until it came
            received = []

            def came(pub=pub, sub=sub, received=received):
                pub.send(b"end")
                received.append(sub.recv(timeout=30))
                return received[-1].data == b"end"

            eventually(came)
            continue
        got = take(sub, b"end")
        assert [m.data for m in got[:300]] == [b"%d" % i for i in range(300)]
        assert got[-2].data == bytes(200_000)
        assert sum(m.lost for m in got) == 0
    for tag in tags:
        for session in nodes:
            (row,) = rows(session, tag)
            assert row.counters["sealed"] == 1, (tag, row)
            assert row.counters.get("forged", 0) == row.counters.get("old_key", 0) == 0
    shown = run_ringcast("channels", "--socket", b.daemon_socket)
    heads, *lines = [line.split() for line in shown.stdout.splitlines() if line.strip()]
    at = heads.index("sealed")
    assert {line[at] for line in lines if line[0] in tags} == {"yes"}
    listed = json.loads(run_ringcast("channels", "--json", "--socket", b.daemon_socket).stdout)
    assert all(row["counters"]["sealed"] == 1 for row in listed["channels"] if row["tag"] in tags)


def test_who_was_revoked_learns_nothing_of_the_groups_it_was_in(closed, tmp_path, eventually, take):
    """The groups end, and go on with new secrets: a new channel begins where the old one ended."""
    a, b, c = closed("abc")
    pub = a.publisher("kept/x", depth=1024)
    eventually(lambda: all(any(tag.publishers for tag in s.tags("kept/x")) for s in (b, c)))
    subs = [s.subscribe("kept/x", transport="multicast+nak", reliable=True) for s in (b, c)]
    for i in range(100):
        pub.send(b"%d" % i)
    for sub in subs:
        assert [m.seq for m in take(sub, b"99")] == list(range(100))
    done = run_ringcast("secure", "revoke", "c", "--identity", str(tmp_path / "a"), "--socket", a.daemon_socket)
    assert done.returncode == 0, done.stderr
    # What c was told opens nothing that is sent from now on: b has another channel, which has carried nothing yet.
    eventually(lambda: [row.messages for row in rows(b, "kept/x")] == [0])
    eventually(lambda: {row.node for row in rows(a, "kept/x")} == {"b"})
    for i in range(100, 200):
        pub.send(b"%d" % i)
    got = take(subs[0], b"199")
    assert [m.seq for m in got] == list(range(100, 200))
    assert sum(m.lost for m in got) == 0
    with pytest.raises(TimeoutError):
        subs[1].recv(timeout=0)


@pytest.mark.parametrize("killed", "ab")
def test_a_daemon_that_is_started_again_has_new_secrets_and_loses_nothing(closed, eventually, take, killed):
    a, b = closed("ab")
    pubs = [a.publisher(f"again/{name}", depth=1024) for name in ("tcp", "nak")]
    eventually(lambda: sum(bool(tag.publishers) for tag in b.tags("again/*")) == 2)
    subs = [b.subscribe(f"again/{name}", transport=name, reliable=True) for name in ("tcp", "nak")]
    for pub, sub in zip(pubs, subs, strict=True):
        pub.send(b"before")
        assert take(sub, b"before")[0].seq == 0
    closed.again(killed)
    for pub, sub in zip(pubs, subs, strict=True):
        for _ in range(20):
            pub.send(b"between")
        pub.send(b"after")
        got = take(sub, b"after")
        assert [m.seq for m in got] == list(range(1, 22))
        assert sum(m.lost for m in got) == 0
    eventually(lambda: b.connected)
    for name in ("tcp", "nak"):
        eventually(lambda name=name: [row.counters["sealed"] for row in rows(b, f"again/{name}")] == [1])
