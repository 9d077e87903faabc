"""The authority of a mesh: the one folder whose key signs certificates.

Invariants: a name is certified for one node at a time, so nobody gets the certificate of a node that has one; what was
issued is written down before it is handed out.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
from cryptography import x509

from ringcast.security import certificates, folder
from ringcast.security.errors import BadCertificate, BadIdentity


class Issued(msgspec.Struct, kw_only=True):
    """A certificate that the authority signed. `serial` is in hexadecimal digits."""

    name: str
    serial: str
    until: datetime
    revoked: datetime | None = None


class _Ledger(msgspec.Struct, kw_only=True):
    number: int = 0
    """Of the newest list of revoked certificates."""
    issued: list[Issued] = []


class Authority:
    def __init__(self, where: Path) -> None:
        """Raises BadIdentity when this folder has no authority."""
        self.folder = where
        if not (where / folder.AUTHORITY_KEY).exists():
            raise BadIdentity(
                str(where / folder.AUTHORITY_KEY), "the mesh's authority is not on this machine",
                "run this where 'ringcast secure init' was run",
            )  # fmt: skip
        try:
            self.certificate = certificates.read(folder.read(where, folder.AUTHORITY))
            self._key = certificates.read_key(folder.read(where, folder.AUTHORITY_KEY))
            self._ledger = msgspec.json.decode(folder.read(where, folder.ISSUED), type=_Ledger)
        except (BadCertificate, msgspec.MsgspecError) as exc:
            raise BadIdentity(str(where), str(exc), "restore the folder from a copy") from exc

    @classmethod
    def init(cls, where: Path, mesh: str, name: str) -> Authority:
        """A new authority, and the certificate of the node on its machine. Raises BadCertificate (no name of a
        node), BadIdentity (the folder is in use)."""
        certificates.check_name(name)
        used = [
            known for known in (folder.AUTHORITY, folder.AUTHORITY_KEY, folder.NODE_KEY) if (where / known).exists()
        ]
        if used:
            raise BadIdentity(
                str(where / used[0]), "there is an identity already", "see 'ringcast secure show', or remove the folder"
            )
        now = certificates.utc_now()
        key = certificates.make_key()
        folder.write(where, folder.AUTHORITY_KEY, certificates.pem_of_key(key))
        folder.write(where, folder.AUTHORITY, certificates.pem_of(certificates.make_authority(key, mesh, now)))
        folder.write(where, folder.ISSUED, msgspec.json.encode(_Ledger()))
        made = cls(where)
        made.equip(where, name)
        made._publish(now)
        return made

    def equip(self, where: Path, name: str, *, renew: bool = False) -> None:
        """A new key and certificate for the node whose folder this is. Raises BadIdentity, BadCertificate."""
        key = certificates.make_key()
        certificate = self.certify(certificates.make_request(key, name), name, renew=renew)
        folder.write(where, folder.NODE_KEY, certificates.pem_of_key(key))
        folder.write(where, folder.NODE, certificate)

    def issued(self) -> list[Issued]:
        return list(self._ledger.issued)

    def certify(self, request: bytes, name: str, *, renew: bool = False) -> bytes:
        """A certificate for a node, as PEM. With `renew` the name may have one already. Raises BadCertificate."""
        now = certificates.utc_now()
        if not renew and any(known.name == name for known in self._valid(now)):
            raise BadCertificate(
                f"the node {name!r} has a certificate already; choose another name, or revoke it first: "
                f"ringcast secure revoke {name}"
            )
        made = certificates.certify(self.certificate, self._key, request, name, now)
        self._ledger.issued.append(
            Issued(name=name, serial=f"{made.serial_number:x}", until=made.not_valid_after_utc)
        )  # fmt: skip
        self._save()
        return certificates.pem_of(made)

    def revoke(self, name: str) -> list[Issued]:
        """Revoke all certificates of a node; returns them. Raises BadCertificate when it has none."""
        now = certificates.utc_now()
        found = [known for known in self._valid(now) if known.name == name]
        if not found:
            known = ", ".join(sorted({one.name for one in self._valid(now)})) or "none"
            raise BadCertificate(f"no valid certificate was issued to {name!r}; those that have one: {known}")
        for one in found:
            one.revoked = now
        self._publish(now)
        return found

    def _valid(self, now: datetime) -> list[Issued]:
        return [one for one in self._ledger.issued if one.revoked is None and one.until > now]

    def _publish(self, now: datetime) -> None:
        self._ledger.number += 1
        self._save()
        serials = {int(one.serial, 16): one.revoked for one in self._ledger.issued if one.revoked is not None}
        made = certificates.make_revocations(self.certificate, self._key, serials, self._ledger.number, now)
        folder.write(self.folder, folder.REVOKED, certificates.pem_of(made))

    def _save(self) -> None:
        folder.write(self.folder, folder.ISSUED, msgspec.json.encode(self._ledger))


def has_authority(where: Path) -> bool:
    return (where / folder.AUTHORITY_KEY).exists()


def fingerprint_words(certificate: x509.Certificate) -> str:
    """A fingerprint as people compare it."""
    text = certificates.fingerprint(certificate)[:16].hex()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))
