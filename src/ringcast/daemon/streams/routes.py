"""How a subscriber's wish, an administrator's word and the tag's attributes become one demand. Pure.

An administrator's setting comes first (for the subscriber, then for its node, then for all nodes), then what the
subscriber asked for, then the tag's attributes, then where the daemon that keeps the tag put it. Invariants: the demand
of a wish is a function of the tag's row, so that a changed row moves streams and nothing else does; a reliable wish is
never given a transport that does not promise it, nor one for an ordered stream a transport without an order.
"""

from __future__ import annotations

from collections.abc import Collection

from ringcast.control.messages import SetChannel
from ringcast.daemon.rings.registrations import Asked, Demand
from ringcast.daemon.table.rows import SubscriberRow, TagRow
from ringcast.errors import QosMismatch
from ringcast.model.place import AUTO, PUBLISHER, SUBSCRIBER, Setting, decided, keys_for, node_of, subscriber_key
from ringcast.transport import find
from ringcast.transport.recipe import unordered
from ringcast.transport.registry import reliable_names

EVERY_NODE = ""
_DEFAULT = {False: "nak", True: "tcp"}


def demand(asked: Asked, row: TagRow | None, node: str, subscriber: int = 0) -> Demand:
    """How streams of the tag are to come to `node`, for that subscriber (0: one that has no number yet)."""
    setting = setting_for(row, node, subscriber)
    attributes = row.attributes if row is not None else None
    if row is None:
        at = asked.at if asked.at != AUTO else PUBLISHER
    else:
        at = decided(asked.at, node, subscriber, row.settings, row.attributes.proxy, row.placed).at
    # Who scales by number counts on an order, so only the whole stream and what the publisher thins out goes without.
    whole = asked.size is None and not asked.rate_hz and (at == PUBLISHER or asked.every == 1)
    in_order = asked.ordered or asked.reliable or not whole
    carriers = (setting.transport, asked.transport, attributes.transport if attributes else "")
    transport = next((name for name in carriers if name and _serves(name, asked, in_order)), _DEFAULT[asked.reliable])
    if not in_order:
        transport = unordered(transport)
    # Scaling at the subscriber is its reader's business, so such subscriptions share the full stream. On this very node
    # a stage makes other sizes, once for all.
    if at == SUBSCRIBER or (node_of(at) == node and asked.size is None):
        return Demand(every=1, at="", transport=transport, reliable=asked.reliable)
    if at == PUBLISHER and asked.every == 1 and asked.size is None and not asked.rate_hz:
        at = ""
    return Demand(
        every=asked.every, at=at, transport=transport, reliable=asked.reliable, size=asked.size, rate_hz=asked.rate_hz
    )


def setting_for(row: TagRow | None, node: str, subscriber: int = 0) -> Setting:
    """What an administrator set for streams of the tag to that subscriber; the narrower counts before the general."""
    if row is None or not row.settings:
        return Setting()
    found = [row.settings[key] for key in keys_for(node, subscriber) if key in row.settings]
    return Setting(
        at=next((setting.at for setting in found if setting.at), ""),
        transport=next((setting.transport for setting in found if setting.transport), ""),
    )


def apart(row: TagRow | None, node: str) -> bool:
    """Whether subscribers of the node that ask for the same may get it in different ways."""
    return row is not None and any(key.startswith(f"{node}#") for key in (*row.settings, *row.placed))


def moved(asked: Asked, at: str | None, transport: str | None) -> Asked:
    """The wish with another place or transport; None leaves one as it is."""
    return asked._replace(
        at=asked.at if at is None else at, transport=asked.transport if transport is None else transport
    )  # fmt: skip


def changed(row: TagRow, node: str, at: str | None, transport: str | None) -> dict[str, Setting]:
    """The tag's settings with those of `node` changed: None leaves one as it is, '' takes it back."""
    old = row.settings.get(node, Setting())
    new = Setting(at=old.at if at is None else at, transport=old.transport if transport is None else transport)
    rest = {name: setting for name, setting in row.settings.items() if name != node}
    return rest if new == Setting() else rest | {node: new}


def check_setting(at: str | None, transport: str | None, nodes: Collection[str], reliable: int) -> None:
    """Raises QosMismatch when there is no such transport or node, or when `reliable` subscribers would be let down."""
    if transport and not find(transport).promises.reliable and reliable:
        raise QosMismatch(
            f"transport {transport!r}", f"{reliable} of the tag's subscribers asked for reliable delivery",
            f"use {' or '.join(reliable_names())}, or let them subscribe with reliable=False",
        )  # fmt: skip
    if at and node_of(at) and node_of(at) not in nodes:
        known = ", ".join(sorted(nodes)) or "none"
        raise QosMismatch(f"a proxy at {at!r}", "there is no such node now", f"the nodes are {known}")


def check_receiver(request: SetChannel, subscribers: Collection[SubscriberRow]) -> None:
    """Raises QosMismatch when the setting is for one subscriber, and there is none of that number."""
    known = sorted(subscriber_key(row.owner, row.info.id) for row in subscribers)
    if "#" in request.node and request.node not in known and (request.at or request.transport):
        asked = f"a setting for subscriber {request.node}"
        raise QosMismatch(asked, f"tag {request.tag!r} has no such one", f"there are {', '.join(known) or 'none'}")


def check_asked(asked: Asked, row: TagRow | None, node: str) -> None:
    """Raises QosMismatch when no transport that the wish or the tag's administrator names can keep it."""
    for said, name in (("", asked.transport), ("an administrator chose it: ", setting_for(row, node).transport)):
        if name and not find(name).promises.reliable and asked.reliable:
            raise QosMismatch(
                "reliable delivery", f"{said}transport {name!r} does not promise it",
                f"use {' or '.join(reliable_names())}, or subscribe with reliable=False",
            )  # fmt: skip
    if asked.transport and asked.ordered and not find(asked.transport).promises.ordered:
        raise QosMismatch(
            "ordered delivery", f"transport {asked.transport!r} does not promise it", "subscribe with ordered=False"
        )


def _serves(transport: str, asked: Asked, in_order: bool) -> bool:
    try:
        promises = find(transport).promises
        return (promises.reliable or not asked.reliable) and (promises.ordered or not in_order)
    except QosMismatch:  # somebody else's word, who has a transport that is not installed here
        return False
