"""What an administrator asks a daemon: decide how a tag's streams go, and see the mesh as one who places proxies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ringcast.client.attachment import Attachment
from ringcast.client.connection import Connection
from ringcast.control.answers import Done, MeshObserved, NodeListing
from ringcast.control.requests import DestroyTag, ListNodes, LoadModel, ObserveMesh, SetChannel
from ringcast.control.service import decode_untrusted
from ringcast.control.status import ClockStatus, NodeStatus
from ringcast.errors import BrokenError, ClocksDisagree
from ringcast.model.place import AUTO, check_place, subscriber_key
from ringcast.model.priority import Change
from ringcast.model.tag import check_name

if TYPE_CHECKING:
    from ringcast.control.placing import Observation
    from ringcast.session import Session


def set_channel(
    connection: Connection, tag: str, node: str, subscriber: int, at: str | None, transport: str | None,
    planned: bool, urgency: Change = Change(),
) -> list[str]:  # fmt: skip
    """Raises as `Session.set_channel` does."""
    check_name(tag)
    place = at if at is None else "" if check_place(at) == AUTO else at
    if subscriber and not node:
        raise ValueError("a subscriber's number counts on its node: say node= as well")
    key = subscriber_key(node, subscriber) if subscriber else node
    level, dscp, sched, bandwidth = urgency.check()
    request = SetChannel(
        id=0, tag=tag, node=key, at=place, transport=transport, planned=planned, priority=level, dscp=dscp, sched=sched,
        bandwidth=bandwidth,
    )  # fmt: skip
    return connection.call(request, Done).warnings


def destroy_tag(attachment: Attachment, name: str, force: bool) -> None:
    """Raises as `Tag.destroy` does."""
    attachment.connection.call(DestroyTag(id=0, name=name, force=force), Done)
    attachment.registry.destroyed(name)


def observe(connection: Connection, *, measured: bool) -> Observation:
    """Raises as `Session.observe` does."""
    from ringcast.control.placing import Observation  # brings all that nodes say to each other

    pages = connection.call_pages(ObserveMesh(id=0, measured=measured), MeshObserved)
    return decode_untrusted(b"".join(page.piece for page in pages), Observation)


def load_model(session: Session, path: str | os.PathLike[str]) -> list[str]:
    """Have the mesh choose transports by this model. Returns warnings, in words: which nodes have not taken it. Raises
    QosMismatch (it is none, or worse than the one in force), BrokenError (the daemon has no network), OSError,
    DaemonUnavailable, ClosedError, ForkedError."""
    with open(path, "rb") as file:
        return session._attachment.connection.call(LoadModel(id=0), Done, (file.fileno(),)).warnings


def nodes(connection: Connection, clock: str = "") -> list[NodeStatus]:
    """Raises as `Session.nodes` does."""
    return [row for page in connection.call_pages(ListNodes(id=0, clock=clock), NodeListing) for row in page.rows]


def clock(connection: Connection, node: str) -> ClockStatus:
    """Raises as `Session.clock` does."""
    here = [row.clock for row in nodes(connection, node) if row.name == node and row.clock is not None]
    if not here:
        raise BrokenError(f"node {node!r} is not in the mesh; 'ringcast nodes' shows which are")
    if here[0].violation:
        raise ClocksDisagree(node, here[0].violation)
    return here[0]
