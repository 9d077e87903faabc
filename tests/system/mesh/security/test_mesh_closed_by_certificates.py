"""A mesh that was closed with `ringcast secure`: those who belong to it join, and nobody else does."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from addresses import free_addresses
from processes import RINGCAST, run_ringcast

import ringcast
from ringcast.security.authority import Authority


def secure(*words):
    return run_ringcast("secure", *map(str, words))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The identities of a, which is the authority, and of b, who was certified by hand."""
    place = tmp_path_factory.mktemp("identities")
    made = Authority.init(place / "a", "test", "a")
    Authority.init(place / "stranger", "other", "b")
    for name in "bc":
        made.equip(place / name, name)
        for file in ("authority.pem", "revoked.pem"):
            (place / name / file).write_bytes((place / "a" / file).read_bytes())
    return place


@pytest.fixture
def closed_mesh(make_daemon, authority):
    """Starts daemons with identities at addresses of one mesh, by name."""
    where = dict(zip("abcd", free_addresses(4), strict=True))

    def start(name, *options, identity=None):
        peers = [word for other, address in where.items() if other != name for word in ("--peer", address)]
        folder = str(authority / (identity or name))
        daemon = make_daemon("--listen", where[name], "--no-scout", *peers, *options, "--identity", folder)
        return daemon, ringcast.connect(socket=daemon.socket_path, start=False)

    start.where = where
    return start


def here(session):
    return {node.name for node in session.nodes() if node.state == "here"}


def test_nodes_find_their_names_in_their_certificates_and_exchange(closed_mesh, eventually, take):
    (_, a), (_, b) = closed_mesh("a"), closed_mesh("b")
    eventually(lambda: here(a) == here(b) == {"a", "b"})
    pub = a.publisher("closed/x")
    eventually(lambda: any(tag.name == "closed/x" and tag.publishers for tag in b.tags()))
    sub = b.subscribe("closed/x")
    pub.send(b"one")
    assert take(sub, b"one")[-1].publisher.node == "a"


@pytest.mark.parametrize("options", [("--identity", "none"), ()], ids=["no certificate", "another mesh's certificate"])
def test_a_stranger_is_refused_in_words(closed_mesh, make_daemon, eventually, options):
    _, a = closed_mesh("a")
    where = closed_mesh.where
    if options:
        stranger = make_daemon("--name", "b", "--listen", where["b"], "--no-scout", "--peer", where["a"], *options)
        session = ringcast.connect(socket=stranger.socket_path, start=False)
    else:
        _, session = closed_mesh("b", identity="stranger")
    words = "secure join" if options else "its certificate is not accepted"
    eventually(lambda: any(words in said for said in a.status().refusals.values()))
    assert here(a) == {"a"}
    assert here(session) == {"b"}


def test_another_nodes_name_is_refused(make_daemon, closed_mesh, authority):
    done = run_ringcast(
        "daemon", "--name", "a", "--listen", closed_mesh.where["b"], "--identity", str(authority / "b"), "--check"
    )
    assert done.returncode == 2
    assert "its certificate in" in done.stderr
    assert "is for 'b'" in done.stderr


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_old_tls_and_no_certificate(closed_mesh, eventually, version):
    _, a = closed_mesh("a")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    host, port = closed_mesh.where["a"].split(":")
    with socket.create_connection((host, int(port)), timeout=30) as plain:
        heard = b""
        try:
            with context.wrap_socket(plain) as secured:
                heard = secured.recv(1)
        except OSError:  # an alert, at the handshake or at the first read
            pass
        assert heard == b""
    words = "version 1.3 is needed" if version is ssl.TLSVersion.TLSv1_2 else "it has no certificate"
    eventually(lambda: words in a.status().refusals.get("127.0.0.1", ""))


def test_who_was_revoked_loses_its_links(closed_mesh, eventually, authority):
    (daemon, a), (_, b), (_, c) = closed_mesh("a"), closed_mesh("b"), closed_mesh("c")
    eventually(lambda: here(a) == here(b) == here(c) == {"a", "b", "c"})
    done = secure("revoke", "c", "--identity", authority / "a", "--socket", daemon.socket_path)
    assert done.returncode == 0, done.stderr
    eventually(lambda: here(a) == here(b) == {"a", "b"})
    eventually(lambda: (authority / "b" / "revoked.pem").read_bytes() == (authority / "a" / "revoked.pem").read_bytes())


def test_a_node_joins_by_invitation(tmp_path: Path):
    base, robot = tmp_path / "base", tmp_path / "robot2"
    assert secure("init", "--name", "base", "--identity", base).returncode == 0
    words = ("secure", "invite", "--host", "127.0.0.1", "--port", "0", "--identity", str(base), "--json")
    with subprocess.Popen([*RINGCAST, *words], stdout=subprocess.PIPE, text=True) as host:
        invitation = json.loads(host.stdout.readline())["invitation"]
        wrong = invitation[:20] + ("A" if invitation[20] != "A" else "B") + invitation[21:]
        refused = secure("join", wrong, "--name", "eve", "--identity", tmp_path / "eve")
        assert (refused.returncode, "its secret is wrong" in refused.stderr) == (1, True)
        joined = secure("join", invitation, "--name", "robot2", "--identity", robot)
        assert joined.returncode == 0, joined.stderr
        assert json.loads(host.stdout.readline()) == {"joined": "robot2"}
        assert host.wait(60) == 0
    assert not (tmp_path / "eve").exists()
    assert (robot / "node.key").stat().st_mode & 0o777 == 0o600
    again = secure("join", invitation, "--name", "late", "--identity", tmp_path / "late")
    assert (again.returncode, "is 'invite' running?" in again.stderr) == (1, True)
    shown = json.loads(secure("show", "--identity", base, "--json").stdout)
    assert {row["name"] for row in shown["issued"]} == {"base", "robot2"}


def test_a_certificate_is_renewed_while_the_daemon_runs(tmp_path: Path, make_daemon, eventually):
    base, robot = tmp_path / "base", tmp_path / "robot2"
    made = Authority.init(base, "test", "base")
    made.equip(robot, "robot2")
    for file in ("authority.pem", "revoked.pem"):
        (robot / file).write_bytes((base / file).read_bytes())
    (address,) = free_addresses(1)
    daemon = make_daemon("--listen", address, "--no-scout", "--identity", str(robot))

    def presented():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), 30) as plain, context.wrap_socket(plain) as secured:
            return secured.getpeercert(binary_form=True)

    ringcast.connect(socket=daemon.socket_path, start=False).close()  # it serves, so it listens
    before = presented()
    words = ("--renew", "--name", "robot2", "--host", "127.0.0.1", "--port", "0", "--identity", str(base), "--json")
    with subprocess.Popen([*RINGCAST, "secure", "invite", *words], stdout=subprocess.PIPE, text=True) as host:
        invitation = json.loads(host.stdout.readline())["invitation"]
        wrong = secure("join", invitation, "--name", "other", "--identity", robot)
        assert (wrong.returncode, "has an identity already" in wrong.stderr) == (2, True)
        joined = secure("join", invitation, "--identity", robot, "--socket", daemon.socket_path, "--json")
        assert joined.returncode == 0, joined.stderr
        assert json.loads(joined.stdout)["daemon_told"]
        assert host.wait(60) == 0
    eventually(lambda: presented() != before)
    rotated = secure("rotate", "--identity", base, "--socket", str(tmp_path / "none.sock"), "--json")
    assert (rotated.returncode, json.loads(rotated.stdout)["daemon_told"]) == (0, False)
