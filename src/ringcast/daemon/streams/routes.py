"""How a subscriber's options, administrative overrides and the tag's attributes become one demand. Pure.

The override for the subscriber comes first, then the one for its node, then the one for all nodes, then what the
subscriber asked for, then the tag's attributes, then where the daemon that keeps the tag put it, and of priorities what
the tag's admitted deadlines ask for. Invariants: the demand follows from the options, the subscriber's number, the
tag's row and what is promised alone, so only a changed row moves streams; a reliable subscription never gets an
unreliable transport, nor an ordered one a transport without an order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ringcast.control.requests import SetChannel
from ringcast.daemon.rings.demand import Demand, SubscribeOptions
from ringcast.daemon.table.rows import SubscriberRow, TagRow
from ringcast.errors import QosMismatch
from ringcast.model.carrier import choice_key, is_automatic
from ringcast.model.place import AUTO, PUBLISHER, SUBSCRIBER, Setting, decided, keys_for, node_of, subscriber_key
from ringcast.model.priority import Change, read, settled, settled_parts
from ringcast.transport import find
from ringcast.transport.recipe import unordered
from ringcast.transport.registry import check_transport, reliable_names

_DEFAULT = {False: "nak", True: "tcp"}


def demand(
    options: SubscribeOptions, row: TagRow | None, node: str, subscriber: int = 0, promised: str = ""
) -> Demand:  # fmt: skip
    """How streams of the tag are to come to `node`, for that subscriber (0: one that has no number yet)."""
    setting = setting_for(row, node, subscriber)
    attributes = row.attributes if row is not None else None
    if row is None:
        at = options.at if options.at != AUTO else PUBLISHER
    else:
        at = decided(options.at, node, subscriber, row.settings, row.attributes.at, row.placed).at
    # Scaling by number needs ordered messages: only the whole stream and what the publisher scales may be unordered.
    whole = options.size is None and not options.rate_hz and (at == PUBLISHER or options.every == 1)
    in_order = options.ordered or options.reliable or not whole
    said = carriers(options.transport, row, node, subscriber)
    chosen = (_chosen(name, row, options.reliable, in_order, receiver) for name, receiver in said)
    transport = next((name for name in chosen if name and _serves(name, options, in_order)), _DEFAULT[options.reliable])
    if not in_order:
        transport = unordered(transport)
    urgency = settled((setting.priority, options.priority, attributes.priority if attributes else "", promised))
    # At the subscriber the reader itself scales, so such subscriptions share the full stream. On this node
    # one stage makes each other size for all.
    if at == SUBSCRIBER or (node_of(at) == node and options.size is None):
        return Demand(every=1, at="", transport=transport, reliable=options.reliable, priority=urgency)
    if at == PUBLISHER and options.every == 1 and options.size is None and not options.rate_hz:
        at = ""
    return Demand(
        every=options.every,
        at=at,
        transport=transport,
        reliable=options.reliable,
        size=options.size,
        rate_hz=options.rate_hz,
        priority=urgency,
    )


def carriers(asked: str, row: TagRow | None, node: str, subscriber: int) -> Iterator[tuple[str, str]]:
    """What is said of transports for that subscriber, who `asked` for one, the narrowest first; '' is nothing. And for
    which receiver alone it is said; '' for all."""
    for key in keys_for(node, subscriber):
        if row is not None and key in row.settings and row.settings[key].transport:
            yield row.settings[key].transport, key
            break
    yield asked, ""
    yield row.attributes.transport if row is not None else "", ""


def _chosen(transport: str, row: TagRow | None, reliable: bool, in_order: bool, receiver: str) -> str:
    """What the keeper chose where the choice was left to it; '' while it has not."""
    if not is_automatic(transport):
        return transport
    # A keeper that is older than the choice for one receiver alone chooses for all.
    keys = dict.fromkeys(choice_key(transport, reliable, in_order, for_whom) for for_whom in (receiver, ""))
    choice = next((row.chosen[key] for key in keys if key in row.chosen), None) if row is not None else None
    return choice.transport if choice is not None else ""


def setting_for(row: TagRow | None, node: str, subscriber: int = 0) -> Setting:
    """The override for streams of the tag to that subscriber; the narrower setting comes before the general one."""
    if row is None or not row.settings:
        return Setting()
    found = [row.settings[key] for key in keys_for(node, subscriber) if key in row.settings]
    return Setting(
        at=next((setting.at for setting in found if setting.at), ""),
        transport=next((setting.transport for setting in found if setting.transport), ""),
        priority=settled_parts(tuple(setting.priority for setting in found)),
    )


def apart(row: TagRow | None, node: str) -> bool:
    """Whether subscribers of the node that ask for the same may get it in different ways."""
    return row is not None and any(key.startswith(f"{node}#") for key in (*row.settings, *row.placed))


def moved(
    options: SubscribeOptions, at: str | None, transport: str | None, urgency: Change = Change()
) -> SubscribeOptions:
    """The options with another place, transport or priority; None leaves a value as it is. Raises ValueError."""
    return options._replace(
        at=options.at if at is None else at, transport=options.transport if transport is None else transport,
        priority=urgency.applied(options.priority),
    )  # fmt: skip


def changed(
    row: TagRow, node: str, at: str | None, transport: str | None, urgency: Change = Change(), *, planned: bool = False
) -> dict[str, Setting]:
    """The tag's settings with those of `node` changed: None leaves a value as it is, '' removes it. Raises
    ValueError."""
    old = row.settings.get(node, Setting())
    new = Setting(
        at=old.at if at is None else at,
        transport=old.transport if transport is None else transport,
        planned=old.planned if at is None else planned and at != "",
        priority=urgency.applied(old.priority),
    )
    rest = {name: setting for name, setting in row.settings.items() if name != node}
    return rest if new == Setting() else rest | {node: new}


def check_setting(at: str | None, transport: str | None, nodes: Collection[str], reliable: int) -> None:
    """Raises QosMismatch when there is no such transport or node, or when the transport is unreliable and the tag has
    `reliable` reliable subscribers."""
    if transport and is_automatic(transport):
        check_transport(transport)
    elif transport and not find(transport).promises.reliable and reliable:
        raise QosMismatch(
            f"transport {transport!r}", f"{reliable} of the tag's subscribers asked for reliable delivery",
            f"use {' or '.join(reliable_names())}, or let them subscribe with reliable=False",
        )  # fmt: skip
    if at and node_of(at) and node_of(at) not in nodes:
        known = ", ".join(sorted(nodes)) or "none"
        raise QosMismatch(f"a proxy at {at!r}", "there is no such node now", f"the nodes are {known}")


def check_urgency(change: Change, words: str = "") -> None:
    """Raises QosMismatch when a class, code point or schedule is none."""
    try:
        change.check()
        read(words)
    except ValueError as exc:
        asked = words or " ".join(part for part in change if part)
        raise QosMismatch(f"the priority {asked!r}", str(exc), "give such a value, or leave it out") from exc


def check_receiver(request: SetChannel, subscribers: Collection[SubscriberRow]) -> None:
    """Raises QosMismatch when the setting is for one subscriber, and there is none of that number."""
    known = sorted(subscriber_key(row.owner, row.info.id) for row in subscribers)
    if "#" in request.node and request.node not in known and (request.at or request.transport or any(request.urgency)):
        asked = f"a setting for subscriber {request.node}"
        raise QosMismatch(asked, f"tag {request.tag!r} has no such one", f"there are {', '.join(known) or 'none'}")


def check_options(options: SubscribeOptions, row: TagRow | None, node: str) -> None:
    """Raises QosMismatch when the transport that the options or an override name cannot keep what the options ask
    for."""
    check_urgency(Change(), options.priority)
    for said, name in (("", options.transport), ("an administrator chose it: ", setting_for(row, node).transport)):
        if is_automatic(name):
            check_transport(name)
        elif name and not find(name).promises.reliable and options.reliable:
            raise QosMismatch(
                "reliable delivery", f"{said}transport {name!r} does not promise it",
                f"use {' or '.join(reliable_names())}, or subscribe with reliable=False",
            )  # fmt: skip
    named = options.transport and not is_automatic(options.transport)
    if named and options.ordered and not find(options.transport).promises.ordered:
        raise QosMismatch(
            "ordered delivery", f"transport {options.transport!r} does not promise it", "subscribe with ordered=False"
        )


def _serves(transport: str, options: SubscribeOptions, in_order: bool) -> bool:
    try:
        promises = find(transport).promises
        return (promises.reliable or not options.reliable) and (promises.ordered or not in_order)
    except QosMismatch:  # named on another node, and not installed here
        return False
