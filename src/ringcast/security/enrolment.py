"""A node joins a mesh by invitation: both ends of the one conversation that needs no certificate of the caller.

    host                                  newcomer
    TLS 1.3 with the host node's certificate
    Greeting(authority)        ->         checks its fingerprint, and that it signed the host's certificate
                               <-         Application(secret, name, request)
    Admission(certificate)     ->         or Rejection(reason)

Invariants: the newcomer says the secret only to a host that the invitation's authority certified; an invitation admits
one node, ends by itself, and after MOST_TRIES wrong secrets; whatever a caller sends, the host goes on.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography import x509

from ringcast.model import addresses
from ringcast.security import certificates, folder
from ringcast.security.authority import Authority
from ringcast.security.errors import BadInvitation, SecurityError
from ringcast.security.invitation import SECRET_BYTES, Invitation

PORT = 7418
MOST_TRIES = 5
MOST_CALLERS = 8
MOST_BYTES = 16 * 1024
PATIENCE_S = 5.0


class Greeting(msgspec.Struct, tag="greeting"):
    authority: str


class Application(msgspec.Struct, tag="application"):
    secret: str
    name: str
    request: str


class Admission(msgspec.Struct, tag="admission"):
    certificate: str
    revoked: str


class Rejection(msgspec.Struct, tag="rejection"):
    reason: str


_Message = Greeting | Application | Admission | Rejection
_decoder: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_Message)
_T = TypeVar("_T")


class Host:
    """Waits for the one who was invited. `name`, if given, is the only one that is certified; with `renew` it may have
    a certificate already."""

    def __init__(
        self, authority: Authority, *, name: str = "", renew: bool = False,
        on_refused: Callable[[str], None] = lambda reason: None,
    ) -> None:  # fmt: skip
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self._authority = authority
        self._name = name
        self._renew = renew
        self._on_refused = on_refused
        self._tries = 0
        self._callers = 0
        self._admitted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self.port = 0

    def invitation(self, host: str) -> Invitation:
        """For those who reach this machine at `host`."""
        fingerprint = certificates.fingerprint(self._authority.certificate)
        return Invitation(addresses.join(host, self.port), fingerprint, self.secret)

    async def open(self, host: str, port: int = PORT) -> None:
        """Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        where = self._authority.folder
        context.load_cert_chain(where / folder.NODE, where / folder.NODE_KEY)
        self._server = await asyncio.start_server(
            self._called, host, port, ssl=context, ssl_handshake_timeout=PATIENCE_S, limit=MOST_BYTES,
            backlog=MOST_CALLERS,
        )  # fmt: skip
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def wait(self, seconds: float) -> str:
        """The name of the node that joined. Raises BadInvitation, TimeoutError."""
        try:
            return await asyncio.wait_for(self._admitted, seconds)
        finally:
            self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._callers >= MOST_CALLERS or self._admitted.done():
            writer.transport.abort()
            return
        self._callers += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                await _send(writer, Greeting(certificates.pem_of(self._authority.certificate).decode()))
                asked = await _receive(reader, Application)
                await _send(writer, self._answer(asked))
        except (OSError, TimeoutError, BadInvitation) as exc:
            self._on_refused(str(exc) or "the caller fell silent")
        finally:
            self._callers -= 1
            writer.close()

    def _answer(self, asked: Application) -> Admission | Rejection:
        if self._admitted.done():
            return Rejection("it was used already")
        if not secrets.compare_digest(asked.secret.encode(), self.secret.hex().encode()):
            self._tries += 1
            if self._tries >= MOST_TRIES:
                self._admitted.set_exception(BadInvitation(f"{MOST_TRIES} callers had a wrong secret"))
            self._on_refused("a caller had a wrong secret")
            return Rejection("its secret is wrong")
        if self._name and asked.name != self._name:
            return Rejection(f"it is for the node {self._name!r}, and this one is called {asked.name!r}")
        try:
            certificate = self._authority.certify(asked.request.encode(), asked.name, renew=self._renew).decode()
            revoked = folder.read(self._authority.folder, folder.REVOKED).decode()
        except SecurityError as exc:
            return Rejection(str(exc))
        self._admitted.set_result(asked.name)
        return Admission(certificate, revoked)


async def join(invitation: Invitation, name: str, where: Path) -> x509.Certificate:
    """Get a certificate for the node `name`, and write its identity. Raises BadInvitation, BadCertificate, BadIdentity,
    OSError (nobody there), TimeoutError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # checked below: what to trust is in the greeting, and in the invitation
    host, port = addresses.split(invitation.address)
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=MOST_BYTES)
        try:
            greeting = await _receive(reader, Greeting)
            authority = certificates.read(greeting.authority.encode())
            _check_host(authority, writer, invitation)
            key = certificates.make_key()
            request = certificates.make_request(key, name).decode()
            await _send(writer, Application(invitation.secret.hex(), name, request))
            answer = await _receive(reader, Admission)
        finally:
            writer.close()
    certificate = certificates.read(answer.certificate.encode())
    certificates.check(certificate, authority, certificates.utc_now())
    folder.write(where, folder.NODE_KEY, certificates.pem_of_key(key))
    folder.write(where, folder.AUTHORITY, greeting.authority.encode())
    folder.write(where, folder.REVOKED, answer.revoked.encode())
    folder.write(where, folder.NODE, answer.certificate.encode())
    return certificate


def _check_host(authority: x509.Certificate, writer: asyncio.StreamWriter, invitation: Invitation) -> None:
    """Raises BadInvitation, BadCertificate."""
    if certificates.fingerprint(authority) != invitation.fingerprint:
        raise BadInvitation(f"another mesh answers at {invitation.address}")
    presented: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    certificates.check(x509.load_der_x509_certificate(presented), authority, certificates.utc_now())


async def _send(writer: asyncio.StreamWriter, message: _Message) -> None:
    writer.write(msgspec.json.encode(message) + b"\n")
    await writer.drain()


async def _receive(reader: asyncio.StreamReader, kind: type[_T]) -> _T:
    """Raises BadInvitation, OSError."""
    try:
        line = await reader.readuntil(b"\n")
        message = _decoder.decode(line)
    except asyncio.IncompleteReadError as exc:
        raise BadInvitation("the other side ended the conversation") from exc
    except (asyncio.LimitOverrunError, msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise BadInvitation("the other side speaks something else") from exc
    if isinstance(message, Rejection):
        raise BadInvitation(message.reason)
    if not isinstance(message, kind):
        raise BadInvitation(f"{type(message).__name__} where {kind.__name__} was due")
    return message


def own_host() -> str:
    """This machine's address by which others most likely reach it: that of the way out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # nothing is sent
            return str(sock.getsockname()[0])
        except OSError:
            return "127.0.0.1"
