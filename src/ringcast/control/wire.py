"""What every control message has in common. The messages are in `requests`, `answers` and `notices`.

One packet of a SOCK_SEQPACKET Unix socket is one message: MessagePack of a tagged struct, with the descriptors
named in a struct's docstring travelling beside it (SCM_RIGHTS), in that order.
"""

from __future__ import annotations

import msgspec

PROTOCOL_VERSION = 2


class ControlMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="t"):
    pass


class Numbered(ControlMessage, frozen=True):
    """A request, or the answer that repeats its number."""

    id: int
