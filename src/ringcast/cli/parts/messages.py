"""A message as `sub` and `pull` show it: a line for people, an object for programs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.units import show_ns
from ringcast.cli.parts.values import as_json, show

if TYPE_CHECKING:
    from ringcast.message import Message


def line(message: Message, age_ns: int) -> str:
    """Tag, number, age, value."""
    return f"{message.tag}  #{message.seq}  {show_ns(age_ns)}  {show(message.data)}"


def record(message: Message) -> dict[str, Any]:
    return {
        "tag": message.tag, "seq": message.seq, "publisher": message.publisher.id, "node": message.publisher.node,
        "pid": message.publisher.pid, "incarnation": message.publisher.incarnation, "event_ns": message.event_ns,
        "sent_ns": message.sent_ns, "received_ns": message.received_ns, "lost": message.lost,
        "discardable": message.discardable, **as_json(message.data),
    }  # fmt: skip
