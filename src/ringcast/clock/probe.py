"""A clock probe and its bytes. Pure.

A probe is a datagram of its own and not a message of the mesh: it must not stand behind anything. The kernel stamps it
on arrival at both ends.

      0      4    5        8                16               24
      +------+----+--------+----------------+----------------+
      | RCCK |kind| zero   | key            | nonce          |
      +------+----+--------+----------------+----------------+
      | heard, ns UTC      | answered, ns UTC                |   both 0 in a question
      +--------------------+---------------------------------+
      | proof: the first 16 bytes of HMAC-SHA-256            |   of all before it
      +------------------------------------------------------+

The node that is asked makes a secret for each node that may ask, and tells it with its number (`key`) over the mesh.
Questions and answers carry the proof that their sender knows it. The nonce is new in each question: an answer counts
once, for the question that it answers. An answer is as long as its question. Times are not encrypted: they are no
secret. HMAC by Python's hmac is used rather than the seals of channels, because probes are few, and a daemon without
libcrypto's ciphers probes as well.
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple

from ringcast.errors import BadMessage

PERIOD_S = 0.1
"""Between probes, unless a setting says otherwise."""
SECRET_BYTES = 32

_MAGIC = b"RCCK"
_FORM = struct.Struct("<4sB3xQQqq")
_PROOF_BYTES = 16
SIZE = _FORM.size + _PROOF_BYTES
_ASK, _ANSWER = 1, 2


class ClockProbe(NamedTuple):
    key: int
    nonce: int
    heard_ns: int = 0
    answered_ns: int = 0
    is_answer: bool = False

    def encode(self, secret: bytes) -> bytes:
        kind = _ANSWER if self.is_answer else _ASK
        said = _FORM.pack(_MAGIC, kind, self.key, self.nonce, self.heard_ns, self.answered_ns)
        return said + _proof(said, secret)


def decode_untrusted(datagram: bytes) -> ClockProbe:
    """What it says, whoever said it. Raises BadMessage."""
    if len(datagram) != SIZE:
        raise BadMessage(f"a clock probe has {SIZE} bytes, not {len(datagram)}")
    magic, kind, key, nonce, heard_ns, answered_ns = _FORM.unpack_from(datagram)
    if magic != _MAGIC or kind not in (_ASK, _ANSWER):
        raise BadMessage("this is no clock probe")
    return ClockProbe(key, nonce, heard_ns, answered_ns, kind == _ANSWER)


def is_proven(datagram: bytes, secret: bytes) -> bool:
    """Whether somebody who knows the secret made it, as it is."""
    said, proof = datagram[: _FORM.size], datagram[_FORM.size :]
    return hmac.compare_digest(proof, _proof(said, secret))


def _proof(said: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, said, "sha256")[:_PROOF_BYTES]
