"""Datagrams that are none, or nobody's: counted by reason, dropped, shown; the streams beside them do not notice."""

import json
import os
import random
import socket
import struct

import pytest
from processes import said_by_ringcast

HEADER = struct.Struct("<HBBIQQqqIHH")
MAGIC = 0x4352


def header(key=1, seq=0, length=5, chunk=1000, *, magic=MAGIC, version=2, kind=1, offset=0):
    return HEADER.pack(magic, version, kind, offset, key, seq, 0, 0, length, chunk, 0)


def ports(pid, kind, state):
    """The ports that a process has sockets on, by the kernel's word."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
    with open(f"/proc/net/{kind}") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in inodes and row[3] == state}


def datagram_ports(node):
    return ports(node.daemon.process.pid, "udp", "07")


def stream_port(node):
    control = int(node.options[node.options.index("--listen") + 1].rpartition(":")[2])
    (port,) = ports(node.daemon.process.pid, "tcp", "0A") - {control}
    return port


class Target:
    """Node b with a subscription to a publisher on a, and a socket to its data port."""

    def __init__(self, a, b, eventually):
        self.pub = a.session.publisher("target")
        eventually(lambda: b.knows("target"))
        before = datagram_ports(b)  # clocks are compared there
        self.sub = b.session.subscribe("target", transport="udp")
        (port,) = datagram_ports(b) - before
        self.node = b
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))

    def dropped(self):
        return {reason: count for reason, count in self.node.session.dropped()["udp"].items() if count}

    def exchange(self):
        for _ in range(3):
            seq = self.pub.send(b"fine")
            msg = self.sub.recv(timeout=30)
            assert (msg.seq, msg.data, msg.lost) == (seq, b"fine", 0)


@pytest.fixture
def target(make_mesh, eventually):
    made = Target(*make_mesh(2), eventually)
    yield made
    made.socket.close()


KINDS = {
    "truncated": [b"RC", header()[:47], header(length=5) + b"four"],
    "foreign": [b"x" * 48, header(magic=0x1234) + b"hello"],
    "newer": [header(version=3) + b"hello", header(version=255) + b"hello"],
    "malformed": [
        header(version=0) + b"hello", header(version=1) + b"hello", header(kind=9) + b"hello",
        header(length=2**31) + b"hello",
        header(offset=3) + b"he", header(chunk=0) + b"hello", header(offset=2000) + b"hello", header() + b"too much",
    ],
    "stranger": [header(key=12345) + b"hello", header(key=0) + b"hello"],
}  # fmt: skip


@pytest.mark.parametrize("reason", KINDS)
def test_each_kind_is_counted_and_dropped(target, eventually, reason):
    for datagram in KINDS[reason]:
        target.socket.send(datagram)
    eventually(lambda: target.dropped() == {reason: len(KINDS[reason])})
    target.exchange()


def test_noise_changes_nothing(target, eventually):
    rng = random.Random(7)
    for _ in range(500):
        target.socket.send(rng.randbytes(rng.randrange(1, 200)))
        target.socket.send(b"RC\x01\x01" + rng.randbytes(rng.randrange(1, 200)))
    eventually(lambda: sum(target.dropped().values()) == 1000)
    target.exchange()


def test_replayed_and_forged_datagrams_of_a_channel(target, eventually):
    """Somebody on the path knows the channel's key: what was there already is not there twice."""
    b = target.node
    key = sniff_key(target)
    if key is None:
        pytest.skip("watching the packets of the loopback needs root")
    for seq in range(3):
        target.socket.send(header(key=key, seq=seq) + b"again")
    eventually(lambda: sum(b.incoming()[0].counters[name] for name in ("duplicates", "late")) >= 3)
    target.exchange()


def test_reordered_and_duplicated_datagrams_of_a_channel(target, eventually):
    """As a network may do it: overtaken ones are put in order, second copies dropped and counted."""
    key = sniff_key(target)
    if key is None:
        pytest.skip("watching the packets of the loopback needs root")
    begin = target.node.incoming()[0].messages
    for seq in (begin + 1, begin + 1, begin, begin, begin + 2):
        target.socket.send(header(key=key, seq=seq) + b"later")
    got = [target.sub.recv(timeout=30) for _ in range(3)]
    assert [(msg.seq, msg.lost) for msg in got] == [(begin, 0), (begin + 1, 0), (begin + 2, 0)]
    (row,) = target.node.incoming()
    assert row.counters["duplicates"] + row.counters["late"] == 2
    heads, line = ringcast_cli("channels", target).splitlines()[:2]
    at = heads.index("repeated")
    assert line[at : at + len("repeated")].strip() == "2"


def sniff_key(target):
    try:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    except PermissionError:
        return None
    with sniffer:
        sniffer.settimeout(30)
        sniffer.bind(("lo", 0))
        port = target.socket.getpeername()[1]
        target.exchange()
        while True:
            packet = sniffer.recv(65536)
            udp = packet[(packet[0] & 15) * 4 :]
            if packet[9] == 17 and struct.unpack_from("!H", udp, 2)[0] == port and udp[8:10] == b"RC":
                return struct.unpack_from("<Q", udp, 16)[0]


def test_channels_shows_it(target, eventually):
    target.exchange()
    target.socket.send(b"not one of ours")
    eventually(lambda: target.dropped() == {"truncated": 1})
    shown = ringcast_cli("channels", target)
    assert "target" in shown
    assert "truncated" in shown
    seen = json.loads(ringcast_cli("channels", target, "--json"))
    assert seen["dropped"]["udp"]["truncated"] == 1
    (row,) = seen["channels"]
    assert (row["direction"], row["node"], row["tag"], row["transport"]) == ("in", "a", "target", "udp")
    assert (row["messages"], row["lost"], row["bytes"]) == (3, 0, 12)


def ringcast_cli(verb, target, *options):
    return said_by_ringcast(verb, "--socket", target.node.daemon.socket_path, "--no-start", *options)


def test_strangers_at_the_stream_port(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("target")
    eventually(lambda: b.knows("target"))
    sub = b.session.subscribe("target", reliable=True)
    for words in (b"GET / HTTP/1.1\r\n\r\n", b"RCSTREAM" + bytes(8), b"x" * 16, b""):
        with socket.create_connection(("127.0.0.1", stream_port(b))) as caller:
            caller.sendall(words)
            caller.settimeout(30)
            try:
                caller.shutdown(socket.SHUT_WR)
                assert caller.recv(1) == b""
            except TimeoutError:
                raise
            except OSError:  # thrown out before we had done
                pass
    pub.send(b"fine")
    assert sub.recv(timeout=30).data == b"fine"
    eventually(lambda: b.session.dropped()["tcp"]["stranger"] >= 3)
