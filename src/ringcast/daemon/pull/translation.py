"""Times in pulls from other nodes: asked for in the other node's time, answered in this node's.

Native threads translate what streams bring; pulls are answered from rings elsewhere, where times are by that node.
"""

from __future__ import annotations

from msgspec.structs import replace

from ringcast import _core
from ringcast.control import service
from ringcast.control.service import Pull, PullAnswer

_MOST = 2**63 - 1


def query(pull: Pull, clock: _core.TimeBase) -> Pull:
    """Of a query by time; others say no time."""
    if pull.kind == "span":
        return replace(pull, first=_there(pull.first, clock), last=_there(pull.last, clock))
    if pull.kind == "before" or (pull.kind == "heads" and pull.last):
        return replace(pull, last=_there(pull.last, clock))
    return pull


def answer(encoded: bytes, clock: _core.TimeBase) -> bytes:
    """Raises BadMessage."""
    found = service.decode_untrusted(encoded, PullAnswer)
    messages = [
        replace(message, event_ns=clock.to_local(message.event_ns), sent_ns=clock.to_local(message.sent_ns))
        for message in found.messages
    ]
    heads = [replace(head, sent_ns=clock.to_local(head.sent_ns)) for head in found.heads]
    return service.encode(replace(found, messages=messages, heads=heads))


def _there(ns: int, clock: _core.TimeBase) -> int:
    # "From the beginning" and "until the end" are said as the ends of the word.
    return ns if ns <= 0 or ns >= _MOST else max(0, clock.to_remote(ns))
