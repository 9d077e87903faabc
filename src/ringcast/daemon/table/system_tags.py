"""Tags that daemons publish on: names that begin with `@`. Pure.

`@ringcast/<node>/channels` has the counters of the channels of a node and what each met in the last seconds, once a
second: what `ringcast channels` shows, as messages, so that whatever reads tags can read them.
`@ringcast/<node>/clocks` has what that node sees happen to clocks, `@ringcast/<node>/audit` what its daemon refused
and to whom, `@ringcast/<node>/choices` what carried the tags that it keeps, and what that cost. Everybody may subscribe
who may at all, even before a daemon sent something; only the daemon of that node publishes.
`@view/...` is what a proxy makes of a tag (`model/policy.py`).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ringcast.codec.schema import describe
from ringcast.control.between.choosing import Lived
from ringcast.control.status import ChannelEnvironment, ChannelStatus, ClockEvent, Refusal
from ringcast.errors import BadTagName
from ringcast.model.policy import PREFIX as VIEWS
from ringcast.model.tag import TagAttributes, matches

PREFIX = "@"


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A ChannelStatus. The incarnation as 16 hexadecimal digits: JSON's readers have no unsigned 64-bit numbers."""

    direction: str
    node: str
    tag: str
    incarnation: str
    transport: str
    every: int
    rate_hz: float
    width: int
    height: int
    """0 where nothing is scaled in space, as a rate of 0 is none."""
    reliable: bool
    messages: int | None
    bytes: int | None
    lost: int | None
    counters: dict[str, int]
    environment: ChannelEnvironment | None = None


class Channels(msgspec.Struct, frozen=True, kw_only=True):
    """One message: the counters of all channels of `node`, since each was opened."""

    node: str
    taken_ns: Annotated[int, msgspec.Meta(description="UTC")]
    channels: list[Channel]
    dropped: dict[str, dict[str, int]]


# Nobody may make a daemon wait, and an hour is remembered.
ATTRIBUTES = TagAttributes(
    codec="json", schema=describe(Channels), depth=3600, capacity_bytes=4 * 1024 * 1024, max_wait_s=0
)


CLOCK_ATTRIBUTES = TagAttributes(
    codec="json", schema=describe(ClockEvent), depth=1024, capacity_bytes=512 * 1024, max_wait_s=0
)
AUDIT_ATTRIBUTES = TagAttributes(
    codec="json", schema=describe(Refusal), depth=4096, capacity_bytes=1024 * 1024, max_wait_s=0
)
CHOICE_ATTRIBUTES = TagAttributes(
    codec="json", schema=describe(Lived), depth=4096, capacity_bytes=4 * 1024 * 1024, max_wait_s=0
)
_ATTRIBUTES = {
    "@ringcast/*/channels": ATTRIBUTES, "@ringcast/*/clocks": CLOCK_ATTRIBUTES, "@ringcast/*/audit": AUDIT_ATTRIBUTES,
    "@ringcast/*/choices": CHOICE_ATTRIBUTES,
}  # fmt: skip


def channels_tag(node: str) -> str:
    return f"@ringcast/{node}/channels"


def clocks_tag(node: str) -> str:
    return f"@ringcast/{node}/clocks"


def audit_tag(node: str) -> str:
    return f"@ringcast/{node}/audit"


def choices_tag(node: str) -> str:
    return f"@ringcast/{node}/choices"


def is_system(name: str) -> bool:
    return name.startswith(PREFIX)


def is_view(name: str) -> bool:
    """What a proxy makes of a tag: its subscribers open it, and a process of the proxy's node publishes on it."""
    return name.startswith(f"{VIEWS}/")


def is_asked(name: str) -> bool:
    """Questions to servers and their answers (`ringcast.asking`), of owners of variables too: anybody's, but selected
    by no ordinary wildcard."""
    return name.startswith(("@ask/", "@reply/", "@variables/"))


def check_opened(name: str) -> dict[str, Any] | None:
    """What a tag of that name has to be like; None when its users decide. Raises BadTagName for nobody's."""
    if not is_system(name) or is_asked(name) or is_view(name):
        return None
    for pattern, attributes in _ATTRIBUTES.items():
        if matches(pattern, name):
            return {field: getattr(attributes, field) for field in attributes.__struct_fields__}
    raise BadTagName(name, "names that begin with @ are the daemons' own")


def check_published(name: str, own: bool) -> None:
    """Raises BadTagName when somebody who is not the daemon wants to publish on, or destroy, a tag of its."""
    if is_system(name) and not own and not is_asked(name) and not is_view(name):
        raise BadTagName(name, "names that begin with @ are the daemons' own; everybody else may subscribe")


def encode(node: str, taken_ns: int, channels: list[msgspec.Raw], dropped: dict[str, dict[str, int]]) -> bytes:
    """A message, of channels that `encode_channel` encoded one by one: of many it takes long."""
    return msgspec.json.encode({"node": node, "taken_ns": taken_ns, "channels": channels, "dropped": dropped})


def encode_channel(row: ChannelStatus) -> msgspec.Raw:
    fields = msgspec.structs.asdict(row)
    width, height = fields.pop("size") or (0, 0)
    # No counters; and tables of what was recorded keep their columns.
    del fields["priority"], fields["in_force"], fields["receiver"], fields["fidelity"], fields["choices"]
    del fields["bound"]
    channel = Channel(**{**fields, "incarnation": f"{row.incarnation:016x}", "width": width, "height": height})
    return msgspec.Raw(msgspec.json.encode(channel))


def decode(message: Any) -> tuple[int, list[ChannelStatus]]:
    """When it was taken, and the rows that `encode` was given, of a message as the tag's codec reads it. Raises
    msgspec.ValidationError."""
    found = msgspec.convert(message, Channels)
    return found.taken_ns, [_status(channel) for channel in found.channels]


def _status(channel: Channel) -> ChannelStatus:
    fields = msgspec.structs.asdict(channel)
    size = (fields.pop("width"), fields.pop("height"))
    changed = {"incarnation": int(channel.incarnation, 16), "size": size if any(size) else None}
    return msgspec.convert({**fields, **changed}, ChannelStatus)
