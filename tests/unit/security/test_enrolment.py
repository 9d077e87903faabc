"""Both ends of an enrolment, over real sockets on 127.0.0.1, in one loop."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from ringcast.security import enrolment, folder
from ringcast.security.authority import Authority
from ringcast.security.enrolment import MOST_TRIES, Host, join
from ringcast.security.errors import BadCertificate, BadInvitation
from ringcast.security.identity import Identity


@pytest.fixture
def authority(tmp_path):
    return Authority.init(tmp_path / "base", "", "base")


def hosted(authority, guest, **how):
    """Run `guest(host, invitation)` while the host waits."""

    async def meet():
        host = Host(authority, **how)
        await host.open("127.0.0.1", 0)
        try:
            return await guest(host, host.invitation("127.0.0.1"))
        finally:
            host.close()

    return asyncio.run(meet())


def test_a_guest_gets_an_identity_of_its_own(authority, tmp_path):
    async def guest(host, invitation):
        await join(invitation, "robot", tmp_path / "robot")
        return await host.wait(30)

    assert hosted(authority, guest) == "robot"
    identity = Identity(tmp_path / "robot")
    assert identity.name == "robot"
    assert identity.authority == authority.certificate
    assert not (tmp_path / "robot" / folder.AUTHORITY_KEY).exists()


def test_an_invitation_is_used_once(authority, tmp_path):
    async def guest(host, invitation):
        await join(invitation, "robot", tmp_path / "robot")
        with pytest.raises((BadInvitation, OSError)):
            await join(invitation, "second", tmp_path / "second")

    hosted(authority, guest)
    assert not (tmp_path / "second").exists()


def test_wrong_secrets_end_the_invitation(authority, tmp_path):
    async def guest(host, invitation):
        for number in range(MOST_TRIES):
            with pytest.raises(BadInvitation, match="its secret is wrong"):
                await join(invitation._replace(secret=bytes([number]) * 16), "eve", tmp_path / "eve")
        with pytest.raises(BadInvitation, match="wrong secret"):
            await host.wait(30)
        with pytest.raises((BadInvitation, OSError)):
            await join(invitation, "late", tmp_path / "late")

    hosted(authority, guest)


def test_it_may_be_for_one_name_alone(authority, tmp_path):
    async def guest(host, invitation):
        with pytest.raises(BadInvitation, match="it is for the node 'robot'"):
            await join(invitation, "other", tmp_path / "other")
        await join(invitation, "robot", tmp_path / "robot")

    hosted(authority, guest, name="robot")


def test_a_name_that_is_taken_is_refused_and_the_invitation_stays(authority, tmp_path):
    async def guest(host, invitation):
        with pytest.raises(BadInvitation, match="'base' has a certificate already"):
            await join(invitation, "base", tmp_path / "base2")
        await join(invitation, "robot", tmp_path / "robot")

    hosted(authority, guest)


@pytest.mark.parametrize(("shows", "error"), [("its own", BadInvitation), ("the true one", BadCertificate)])
def test_the_secret_is_not_said_to_somebody_else(authority, tmp_path, shows, error):
    """A machine in between has a key of its own; the authority's certificate everybody may have."""
    eve = Authority.init(tmp_path / "eve", "", "base")
    pem = folder.read((eve if shows == "its own" else authority).folder, folder.AUTHORITY).decode()

    async def guest(_, invitation):
        heard = asyncio.get_running_loop().create_future()

        async def answer(reader, writer):
            await enrolment._send(writer, enrolment.Greeting(pem))
            heard.set_result(await reader.read(1))
            writer.close()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(eve.folder / folder.NODE, eve.folder / folder.NODE_KEY)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(error):
            await join(invitation._replace(address=f"127.0.0.1:{port}"), "robot", tmp_path / "robot")
        server.close()
        assert await heard == b""

    hosted(authority, guest)
    assert not (tmp_path / "robot").exists()


SAID = [b"", b"\n", b"{}\n", b'{"type":"greeting","authority":"x"}\n', b"x" * 40_000 + b"\n", b"\xff\xfe\n"]


@pytest.mark.parametrize("said", SAID)
def test_whatever_a_caller_says_the_next_one_is_served(authority, tmp_path, said):
    async def guest(host, invitation):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", host.port, ssl=context)
        writer.write(said)
        writer.close()
        await join(invitation, "robot", tmp_path / "robot")

    hosted(authority, guest)
