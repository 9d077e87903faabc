"""Callers of a closed mesh whose proof is not good: an expired or revoked certificate, one for another name, of another
authority, none at all, an old TLS, an old protocol. Each is refused in words, counted, and on record."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from addresses import free_addresses
from outsiders import RuledNode

import ringcast
from ringcast.control.peering import Hello, NodeRecord, encode_frame
from ringcast.security import certificates, folder
from ringcast.security.authority import Authority
from ringcast.testing.waiting import PATIENCE_S


class Closed:
    """A daemon of a closed mesh, and its authority."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.authority = Authority.init(place / "base", "test", "base")
        (self.address,) = free_addresses(1)
        self.node = RuledNode("", "--listen", self.address, "--no-scout", "--identity", str(place / "base"))
        self.session = self.node.session()

    def identity(self, name: str, *, days: float = 1.0, of: Authority | None = None) -> Path:
        """A folder with a certificate that ends after so many days, or ended."""
        authority = of or self.authority
        where, key = self.place / f"{name}{days:g}{of is None}", certificates.make_key()
        now = certificates.utc_now() + timedelta(days=min(0.0, days - 1))
        made = certificates.certify(
            authority.certificate, authority._key, certificates.make_request(key, name), name, now, days=1.0
        )
        folder.write(where, folder.NODE_KEY, certificates.pem_of_key(key))
        folder.write(where, folder.NODE, certificates.pem_of(made))
        return where

    def ends(self, context: ssl.SSLContext, record: NodeRecord, **fields: Any) -> bool:
        """Say hello; whether it ends the link."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), PATIENCE_S) as plain:
            try:
                with context.wrap_socket(plain) as secured:
                    secured.sendall(encode_frame(Hello(record=record, **fields)))
                    while secured.recv(4096):
                        pass  # its own hello
            except TimeoutError:
                return False
            except OSError:
                pass
        return True

    def words(self) -> str:
        return " ".join(self.session.status().refusals.values())

    def on_record(self) -> list[dict[str, Any]]:
        text = self.node.audit.read_text() if self.node.audit.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


def context(where: Path | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.minimum_version = made.maximum_version = version
    if where is not None:
        made.load_cert_chain(where / folder.NODE, where / folder.NODE_KEY)
    return made


def record(name: str) -> NodeRecord:
    return NodeRecord(name=name, incarnation=2**40, control=("127.0.0.1:9",))


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    made = Closed(tmp_path_factory.mktemp("closed"))
    yield made
    made.node.close()


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ("expired", "expired"), ("stranger", "its certificate is not accepted"), ("revoked", "was revoked"),
        ("nobody", "it has no certificate"), ("old tls", "version 1.3 is needed"),
        ("wrong name", "its certificate is for 'carol'"),
    ],
)  # fmt: skip
def test_it_is_refused_in_words_and_counted(
    closed: Closed, eventually: Callable[..., None], who: str, words: str, tmp_path: Path
) -> None:
    before = len(closed.on_record())
    match who:
        case "expired":
            used = context(closed.identity("alice", days=-3))
        case "stranger":
            used = context(closed.identity("alice", of=Authority.init(tmp_path / "other", "other", "x")))
        case "revoked":
            closed.authority.equip(tmp_path / "bob", "bob")
            closed.authority.revoke("bob")
            closed.node.rule("")  # as 'ringcast secure revoke' does: the daemon reads its folder again
            eventually(lambda: closed.ends(context(tmp_path / "bob"), record("bob")))
            used = context(tmp_path / "bob")
        case "nobody":
            used = context()
        case "old tls":
            used = context(closed.identity("alice"), ssl.TLSVersion.TLSv1_2)
        case _:
            used = context(closed.identity("carol"))
    assert closed.ends(used, record("dave" if who == "wrong name" else "alice"))
    eventually(lambda: words in closed.words())
    eventually(lambda: any(words in one["reason"] for one in closed.on_record()[before:]))
    assert {node.name for node in closed.session.nodes() if node.state == "here"} == {"base"}


def test_an_older_protocol_is_refused_in_words(closed: Closed, eventually: Callable[..., None]) -> None:
    assert closed.ends(context(closed.identity("erin")), record("erin"), version=1)
    eventually(lambda: "protocol" in closed.words())
    assert "erin" not in {node.name for node in closed.session.nodes() if node.state == "here"}


def test_calls_without_end_are_ended_before_tls(closed: Closed, eventually: Callable[..., None]) -> None:
    """Half-open handshakes of one host take a part of the places only, and a stream goes on."""
    host, port = closed.address.rsplit(":", 1)
    tag = closed.session.tag("x")
    publisher, reading = tag.publisher(), tag.subscribe(reliable=True)
    with contextlib.ExitStack() as stack:
        for number in range(200):
            stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
            publisher.send(b"%d" % number)
        assert [bytes(reading.recv(PATIENCE_S).data) for _ in range(200)] == [b"%d" % n for n in range(200)]
        eventually(lambda: closed.session.dropped()["mesh"]["not proven"] >= 150)
    assert isinstance(closed.session, ringcast.Session)
