"""Certificates: an authority's, nodes', and the list of those that were revoked.

A node's certificate carries its name twice: as common name for people, as DNS name for programs. P-256 keys.
Invariants: what came from elsewhere is parsed by the `cryptography` package and by nothing else; whatever is wrong with
it raises BadCertificate. The caller says what time it is.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ringcast.control.peering import NAME_PATTERN
from ringcast.security.errors import BadCertificate

AUTHORITY_DAYS = 3650
NODE_DAYS = 90
EARLIER = timedelta(hours=1)
"""A certificate is valid from so long before it was made: clocks differ."""

Key = ec.EllipticCurvePrivateKey


def make_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def make_authority(key: Key, mesh: str, now: datetime) -> x509.Certificate:
    """A certificate that signs itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ringcast mesh {mesh}".strip())])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def check_name(name: str) -> None:
    """Raises BadCertificate."""
    if not re.match(NAME_PATTERN, name):
        raise BadCertificate(f"{name!r} is not the name of a node: up to 64 letters, digits and _ . -")


def make_request(key: Key, name: str) -> bytes:
    """What a node sends to be certified, as PEM: its public key, and the proof that it holds the private one."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def certify(
    authority: x509.Certificate,
    authority_key: Key,
    request: bytes,
    name: str,
    now: datetime,
    *,
    days: float = NODE_DAYS,
) -> x509.Certificate:
    """A node's certificate. Of the request only the public key counts. Raises BadCertificate."""
    check_name(name)
    try:
        asked = x509.load_pem_x509_csr(request)
        sound = asked.is_signature_valid
        public = asked.public_key()
    except Exception as exc:
        raise BadCertificate(f"this is no certificate request: {exc}") from exc
    if not sound or not isinstance(public, ec.EllipticCurvePublicKey):
        raise BadCertificate("the request is not signed by the key it is for, or the key is of another kind")
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(subject, authority.subject, public, now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(both, critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, days: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
    )


# ------------------------------------------------------------------ reading


def read(pem: bytes) -> x509.Certificate:
    """Raises BadCertificate."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except Exception as exc:
        raise BadCertificate(f"this is no certificate: {exc}") from exc


def read_key(pem: bytes) -> Key:
    """Raises BadCertificate."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except Exception as exc:
        raise BadCertificate(f"this is no private key: {exc}") from exc
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadCertificate("the private key is not of an elliptic curve")
    return key


def pem_of(certificate: x509.Certificate | x509.CertificateRevocationList) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def pem_of_key(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def name_of(certificate: x509.Certificate) -> str:
    """The node that a certificate is for. Raises BadCertificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = names.get_values_for_type(x509.DNSName)
    except Exception as exc:
        raise BadCertificate("the certificate names no node: it needs one DNS name, the node's") from exc
    if len(found) != 1 or not re.match(NAME_PATTERN, found[0]):
        raise BadCertificate(f"the certificate has the DNS names {found}; it needs exactly one, the node's")
    return found[0]


def fingerprint(certificate: x509.Certificate) -> bytes:
    return certificate.fingerprint(hashes.SHA256())


def check(certificate: x509.Certificate, authority: x509.Certificate, now: datetime) -> None:
    """Raises BadCertificate unless the authority signed it and now is its time."""
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception as exc:
        raise BadCertificate("the certificate was not signed by this mesh's authority") from exc
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise BadCertificate(
            f"the certificate is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, and it is {now:%Y-%m-%d %H:%M}"
        )


# ------------------------------------------------------------------ revoking


def make_revocations(
    authority: x509.Certificate, key: Key, serials: dict[int, datetime], number: int, now: datetime
) -> x509.CertificateRevocationList:
    """The list of all revoked certificates; of two lists the one with the higher number counts."""
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now)
        .next_update(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.CRLNumber(number), critical=False)
    )
    for serial, at in serials.items():
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(at).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, hashes.SHA256())


def read_revocations(pem: bytes, authority: x509.Certificate) -> tuple[int, frozenset[int]]:
    """The number of a list, and the serial numbers on it. Raises BadCertificate."""
    try:
        found = x509.load_pem_x509_crl(pem)
        public = authority.public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey) or not found.is_signature_valid(public):
            raise InvalidSignature
        number = found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        return number, frozenset(entry.serial_number for entry in found)
    except Exception as exc:
        raise BadCertificate("this is no list of revoked certificates of this mesh's authority") from exc


def utc_now() -> datetime:
    return datetime.now(UTC)
