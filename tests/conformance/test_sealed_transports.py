"""Every transport of ours keeps its promises when its packets are sealed, too, and says that they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringcast import _core
from ringcast.testing.transports import CHECKS, bench, sealed
from ringcast.transport import find, names
from ringcast.transport.sealing import fresh_seal

STACKS = ["multicast+nak", "lateral+nak:r=4,c=3", "multicast+parity+nak", "lossy+multicast+lateral+nak:loss=5%,seed=2"]
SEALING = [name for name in names() if getattr(find(name), "seals", False)]


@pytest.fixture(autouse=True)
def sealing() -> Iterator[None]:
    with sealed():
        yield


@pytest.mark.parametrize("name", [*SEALING, *STACKS])
@pytest.mark.parametrize("check", CHECKS)
def test_sealed_transport(name: str, check: str) -> None:
    CHECKS[check](find(name))


def test_ours_all_seal() -> None:
    assert {"udp", "tcp", "multicast", "nak", "lateral", "parity", "ack"} <= set(SEALING)


@pytest.mark.parametrize("name", ["udp", "tcp", "nak", "multicast+nak"])
def test_both_ends_say_that_a_channel_is_sealed(name: str) -> None:
    with bench(find(name)) as b, b.path() as path:
        b.send(b"one")
        path.receive(1)
        assert path.mirror.counters()["sealed"] == 1
        assert path.sending.counters()["sealed"] == 1


@pytest.mark.parametrize("name", ["udp", "nak", "parity"])
def test_a_sealed_datagram_is_no_longer_than_the_way_is_wide(name: str) -> None:
    """The longest one of a message of many pieces is what an Ethernet takes, or what loopback does for udp."""
    with bench(find(name), capacity_bytes=1 << 20) as b, b.path() as path:
        payload = bytes(range(256)) * 1000
        b.send(payload)
        assert path.receive(1)[0].data == payload
        counters = path.mirror.counters()
    chunk = path.channel.seat.chunk if path.channel.seat is not None else None
    if chunk is not None:
        assert chunk + 48 + _core.SEAL_BYTES + (162 if name == "parity" else 0) == 1472
        assert counters["datagrams"] >= len(payload) // chunk


@pytest.mark.parametrize("name", ["udp", "nak", "multicast+nak", "lateral+nak:r=4,c=3"])
def test_a_stream_goes_on_through_epochs(name: str) -> None:
    """Keys change while messages flow; each arrives, and both ends are in the newest epoch."""
    with bench(find(name)) as b, b.path() as path:
        sealing = path.sending._sealing if name == "udp" else path.sending._group.sealing
        sealing._epoch_packets = 10
        for turn in range(40):
            b.send(*(b"%d" % i for i in range(turn * 20, turn * 20 + 20)))
            assert [m.data for m in path.receive(20)] == [b"%d" % i for i in range(turn * 20, turn * 20 + 20)]
            path.sending.renew_keys()
        assert sealing.native.epoch >= 35
        counters = path.mirror.counters()
        assert (counters["lost"], counters["forged"], counters["old_key"]) == (0, 0, 0)


def test_a_process_that_cannot_seal_leaves_the_stream_to_the_daemon() -> None:
    """Its libcrypto lacks the cipher, say."""
    with bench(find("udp")) as b, b.path() as path:
        key, page = path.sending._sealing.link(0)
        unknown = key[:4] + (99).to_bytes(4, "little") + key[8:]
        b.publisher.add_link(
            path.channel.key, path.sending._socket.fileno(), key=path.channel.key, every=1, chunk=1000,
            first_seq=b.publisher.next_seq, seal=(unknown, page),
        )  # fmt: skip
        b.send(b"one")
        (answer,) = b.publisher.fanout.take_answers()
        assert (answer.link, answer.seq, answer.behind) == (path.channel.key, 0, False)


def test_no_secret_is_shown() -> None:
    seal = fresh_seal()
    assert repr(seal.secret) not in repr(seal)
    assert "secret" not in repr(seal)
