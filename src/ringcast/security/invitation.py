"""An invitation to a mesh, as one word that can be copied: where to go, whom to expect there, and a secret. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from ringcast.model import addresses
from ringcast.security.errors import BadInvitation

PREFIX = "ringcast1-"
SECRET_BYTES = 16
FINGERPRINT_BYTES = 32
MOST_BYTES = 512


class Invitation(NamedTuple):
    """`fingerprint` is that of the authority's certificate: whoever answers has to be certified by it."""

    address: str
    fingerprint: bytes
    secret: bytes

    def word(self) -> str:
        raw = self.secret + self.fingerprint + self.address.encode()
        return PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read(word: str) -> Invitation:
    """Raises BadInvitation."""
    word = word.strip()
    if not word.startswith(PREFIX) or len(word) > MOST_BYTES:
        raise BadInvitation(f"an invitation begins with {PREFIX}")
    body = word.removeprefix(PREFIX)
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        address = raw[SECRET_BYTES + FINGERPRINT_BYTES :].decode("ascii")
        addresses.split(address)
    except (binascii.Error, ValueError) as exc:
        raise BadInvitation("a part of it is missing or was changed; copy it whole") from exc
    return Invitation(
        address, raw[SECRET_BYTES : SECRET_BYTES + FINGERPRINT_BYTES], raw[:SECRET_BYTES]
    )  # fmt: skip
