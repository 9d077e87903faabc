"""A node's identity as its daemon uses it: TLS both ways, who is at the other end, and who is no longer believed.

Certificates of any PKI do, if each names its node as the one DNS name and the authority's certificate is at hand.
Invariants: TLS 1.3 only, both sides certified; a revoked certificate is refused, whoever presents it; of two lists of
revoked certificates the higher number counts, and one that the authority did not sign counts nothing.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from ringcast.security import certificates, folder
from ringcast.security.errors import BadCertificate, BadIdentity


class Proof(NamedTuple):
    """What the certificate at the other end of a link says."""

    name: str
    serial: int
    until: datetime


class Identity:
    """Raises BadIdentity when the folder does not hold one that is valid now."""

    def __init__(self, where: Path) -> None:
        self.folder = where
        try:
            self.authority = certificates.read(folder.read(where, folder.AUTHORITY))
            self.certificate = certificates.read(folder.read(where, folder.NODE))
            self.name = certificates.name_of(self.certificate)
            folder.read(where, folder.NODE_KEY)  # for its mode
            self._number, self._revoked = 0, frozenset[int]()
            self.revocations = b""
            self.read_again()
            self._server = self._context(ssl.PROTOCOL_TLS_SERVER)
            self._client = self._context(ssl.PROTOCOL_TLS_CLIENT)
        except (BadCertificate, ssl.SSLError, OSError) as exc:
            raise BadIdentity(str(where), str(exc), "get a new one with 'ringcast secure join'") from exc
        now = certificates.utc_now()
        if self.until < now:
            raise BadIdentity(
                str(where / folder.NODE), f"the certificate was valid until {self.until:%Y-%m-%d %H:%M} UTC",
                "get a new one with 'ringcast secure join'",
            )  # fmt: skip

    def renew(self) -> bool:
        """Whether the folder has another certificate for this node now; new links use it. Raises BadIdentity."""
        found = certificates.read(folder.read(self.folder, folder.NODE))
        if found == self.certificate:
            return False
        newer = Identity(self.folder)
        if newer.name != self.name or newer.authority != self.authority:
            raise BadIdentity(
                str(self.folder), f"the certificate there is for {newer.name!r}, or of another authority",
                "start the daemon again to use it",
            )  # fmt: skip
        self.certificate, self._server, self._client = newer.certificate, newer.server, newer.client
        return True

    @property
    def until(self) -> datetime:
        """When this node's certificate ends."""
        return self.certificate.not_valid_after_utc

    @property
    def server(self) -> ssl.SSLContext:
        return self._server

    @property
    def client(self) -> ssl.SSLContext:
        return self._client

    def proof(self, link: ssl.SSLObject | None) -> Proof:
        """Who is at the other end of a link whose handshake is done. Raises BadCertificate."""
        presented = link.getpeercert(binary_form=True) if link is not None else None
        if presented is None:
            raise BadCertificate("the other side presented no certificate")
        certificate = x509.load_der_x509_certificate(presented)
        if self.is_revoked(certificate.serial_number):
            raise BadCertificate(f"the certificate of {certificates.name_of(certificate)!r} was revoked")
        return Proof(certificates.name_of(certificate), certificate.serial_number, certificate.not_valid_after_utc)

    def is_revoked(self, serial: int) -> bool:
        return serial in self._revoked

    def learn(self, revocations: bytes, *, keep: bool = True) -> bool:
        """Take a list of revoked certificates; False when it is no newer. Raises BadCertificate, BadIdentity."""
        number, serials = certificates.read_revocations(revocations, self.authority)
        if number <= self._number:
            return False
        self._number, self._revoked, self.revocations = number, serials, revocations
        if keep:
            folder.write(self.folder, folder.REVOKED, revocations)
        return True

    def read_again(self) -> bool:
        """Whether the folder has a newer list of revoked certificates now. Raises BadCertificate, BadIdentity."""
        if not (self.folder / folder.REVOKED).exists():
            return False
        return self.learn(folder.read(self.folder, folder.REVOKED), keep=False)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # nodes are known by their names, and not by where they are
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=certificates.pem_of(self.authority).decode())
        context.load_cert_chain(self.folder / folder.NODE, self.folder / folder.NODE_KEY)
        return context
