"""Two nodes with identities: every stream between them is sealed, by whichever transport. What others send under its
key is dropped and counted."""

from __future__ import annotations

import json
import select
import socket

import pytest
from addresses import free_addresses
from processes import run_ringcast

import ringcast
from ringcast.security.authority import Authority

TRANSPORTS = ["udp", "tcp", "nak", "multicast+nak", "lateral+nak:r=4,c=3", "parity+nak", "ack"]


@pytest.fixture
def nodes(make_daemon, tmp_path, eventually):
    """Sessions with a and b."""
    made = Authority.init(tmp_path / "a", "test", "a")
    made.equip(tmp_path / "b", "b")
    for file in ("authority.pem", "revoked.pem"):
        (tmp_path / "b" / file).write_bytes((tmp_path / "a" / file).read_bytes())
    where = dict(zip("ab", free_addresses(2), strict=True))
    sessions = []
    for name, other in ("ab", "ba"):
        daemon = make_daemon(
            "--listen", where[name], "--no-scout", "--peer", where[other], "--identity", str(tmp_path / name)
        )
        sessions.append(ringcast.connect(socket=daemon.socket_path, start=False))
        sessions[-1].daemon_socket = daemon.socket_path
    eventually(lambda: all(sum(node.state == "here" for node in s.nodes()) == 2 for s in sessions))
    yield sessions
    for session in sessions:
        session.close()


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


def test_nothing_of_a_message_is_on_the_wire(nodes, eventually, take):
    """Listen on the loopback device while secrets are sent by datagrams and by a stream."""
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    except PermissionError:
        pytest.skip("listening on a device needs root")
    a, b = nodes
    secret = b"nobody may read this" * 3
    with tap:
        tap.bind(("lo", 0))
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        heard = b""
        for name in ("udp", "tcp", "nak"):
            pub = a.publisher(f"wire/{name}")
            eventually(lambda name=name: any(tag.publishers for tag in b.tags(f"wire/{name}")))
            sub = b.subscribe(f"wire/{name}", transport=name)
            pub.send(secret)
            take(sub, secret)
        while select.select([tap], [], [], 0)[0]:
            heard += tap.recv(65536)
        assert b"RC" in heard
        assert secret[:20] not in heard


@pytest.mark.parametrize("name", ["udp", "nak"])
def test_datagrams_of_others_are_counted_and_change_nothing(nodes, eventually, take, name):
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    except PermissionError:
        pytest.skip("listening on a device needs root")
    a, b = nodes
    pub = a.publisher("forged/x")
    eventually(lambda: any(tag.publishers for tag in b.tags("forged/x")))
    with tap, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        tap.bind(("lo", 0))
        sub = b.subscribe("forged/x", transport=name)
        pub.send(b"first")
        take(sub, b"first")
        frames = []
        while select.select([tap], [], [], 0)[0]:
            frames.append(tap.recv(65536))
        # Ethernet, IPv4, UDP: 42 bytes before ours.
        data = [f for f in frames if f[23:24] == b"\x11" and f[42:44] == b"RC" and f[45] == 1]
        assert data
        port = int.from_bytes(data[0][36:38])
        packet = data[0][42:]
        (before,) = rows(b, "forged/x")
        for i in range(50):
            changed = bytearray(packet)
            changed[16 + i % (len(packet) - 16)] ^= 1 << i % 8
            forger.sendto(bytes(changed), ("127.0.0.1", port))
        for _ in range(50):
            forger.sendto(packet, ("127.0.0.1", port))

        def refused():
            (row,) = rows(b, "forged/x")
            names = ("forged", "replayed", "old_key")
            return sum(row.counters[one] - before.counters[one] for one in names) >= 100

        eventually(refused)
        pub.send(b"second")
        got = take(sub, b"second")
        assert [m.data for m in got] == [b"second"]
        assert got[0].lost == 0
