"""A clock probe and its bytes. Pure.

A probe is a datagram of its own and not a message of the mesh: it must not stand behind anything. The kernel stamps it
on arrival at both ends.

      0      4    5        8                16               24
      +------+----+--------+----------------+----------------+
      | RCCK |kind| zero   | key            | nonce          |
      +------+----+--------+----------------+----------------+
      | heard, ns UTC      | answered, ns UTC                |   both 0 in a question
      +--------------------+---------------------------------+

The key was told to whoever may ask, over the mesh. The nonce is the asker's secret until the answer repeats it: who
does not see the traffic can neither ask nor answer. An answer is as long as its question.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ringcast.errors import BadMessage

PERIOD_S = 0.1
"""Between probes, unless a setting says otherwise."""

_MAGIC = b"RCCK"
_FORM = struct.Struct("<4sB3xQQqq")
SIZE = _FORM.size
_ASK, _ANSWER = 1, 2


class ClockProbe(NamedTuple):
    key: int
    nonce: int
    heard_ns: int = 0
    answered_ns: int = 0
    is_answer: bool = False

    def encode(self) -> bytes:
        kind = _ANSWER if self.is_answer else _ASK
        return _FORM.pack(_MAGIC, kind, self.key, self.nonce, self.heard_ns, self.answered_ns)


def decode_untrusted(datagram: bytes) -> ClockProbe:
    """Raises BadMessage."""
    if len(datagram) != SIZE:
        raise BadMessage(f"a clock probe has {SIZE} bytes, not {len(datagram)}")
    magic, kind, key, nonce, heard_ns, answered_ns = _FORM.unpack(datagram)
    if magic != _MAGIC or kind not in (_ASK, _ANSWER):
        raise BadMessage("this is no clock probe")
    return ClockProbe(key, nonce, heard_ns, answered_ns, kind == _ANSWER)
