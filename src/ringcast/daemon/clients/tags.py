"""Tags as clients of this node, its configuration and other nodes open, set and destroy them.

Invariant: a tag that ends takes with it what this node has of it, and whoever held a registration on it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from ringcast.control.answers import Done, TagOpened
from ringcast.control.descriptor import Descriptor, expect
from ringcast.control.notices import TagGone
from ringcast.control.requests import DestroyTag, ListTags, OpenTag, SetChannel
from ringcast.daemon.access.rights import Rights
from ringcast.daemon.clients.publishers import Publishers, streams
from ringcast.daemon.clients.subscribers import Subscribers
from ringcast.daemon.effects import Send
from ringcast.daemon.observe import listing
from ringcast.daemon.rings.registrations import OWN_CLIENT, Client
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.streams import routes
from ringcast.daemon.table import settings
from ringcast.daemon.table.attributes import resolve
from ringcast.daemon.table.rows import TagRow
from ringcast.daemon.table.system_tags import check_opened, check_published
from ringcast.daemon.table.table import TagTable
from ringcast.errors import TagConflict, TagInUse, UnknownTag
from ringcast.model.carrier import Chosen
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Placed, Setting, subscriber_key
from ringcast.model.tag import check_name, check_pattern, tag_id
from ringcast.transport.registry import check_transport


class Tags:
    """`settings_of` says what the configuration sets for a tag that is created here."""

    def __init__(
        self, table: TagTable, sharing: Sharing, publishers: Publishers, subscribers: Subscribers,
        clients: dict[int, Client], settings_of: Callable[[str], dict[str, Setting]], rights: Rights,
    ) -> None:  # fmt: skip
        self._table = table
        self._sharing = sharing
        self._rings = sharing.rings
        self._effects = sharing.effects
        self._publishers = publishers
        self._subscribers = subscribers
        self._clients = clients
        self._settings_of = settings_of
        self._rights = rights
        self.handlers: dict[type[Any], Callable[[Client, Any, list[Descriptor]], None]] = {
            OpenTag: self._open, DestroyTag: self._destroy, SetChannel: self._set_channel, ListTags: self._list_tags
        }  # fmt: skip

    def _open(self, client: Client, request: OpenTag, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        required = check_opened(check_name(request.name))
        requested = request.requested if required is None else {**required, **request.requested}
        if transport := requested.get("transport"):
            resolve(request.name, {"transport": transport}, None)  # it is text, and no longer than it may be
            check_transport(transport)
        row, changes = self._table.open_tag(request.name, requested, request.create, self._settings_of(request.name))
        self._effects.note(changes)
        self._effects.send(
            client.number,
            TagOpened(id=request.id, name=row.name, tag_id=tag_id(row.name), attributes=row.attributes),
        )

    def declare(self, name: str, attributes: dict[str, Any]) -> list[Send]:
        """Create a tag that the configuration declares; one that is different and that nobody uses yet is replaced.

        Raises TagConflict when it is there, different, and used or kept elsewhere.
        """
        known = self._table.tag(name)
        used = self._table.publishers(name) or any(row.info.pattern == name for row in self._table.subscribers(name))
        if known is not None and known.primary == self._table.node and not used:
            try:
                resolve(name, attributes, known.attributes)
            except TagConflict:
                self.end(name)
        _, changes = self._table.open_tag(name, attributes, settings=self._settings_of(name))
        self._effects.note(changes)
        return self._effects.finish()

    def put_settings(self, row: TagRow, settings: dict[str, Setting]) -> list[Send]:
        """Exchange the settings of a tag that this node keeps."""
        self._effects.note(self._table.put(msgspec.structs.replace(row, settings=settings)))
        self._sharing.rematch(row.name)
        return self._effects.finish()

    def put_placed(self, row: TagRow, placed: dict[str, Placed]) -> list[Send]:
        """Put proxies of a tag that this node keeps elsewhere."""
        self._effects.note(self._table.put(msgspec.structs.replace(row, placed=placed)))
        self._sharing.rematch(row.name)
        return self._effects.finish()

    def put_chosen(self, row: TagRow, chosen: dict[str, Chosen]) -> list[Send]:
        """Have a tag that this node keeps carried by other transports, where that was left to it."""
        self._effects.note(self._table.put(msgspec.structs.replace(row, chosen=chosen)))
        self._sharing.rematch(row.name)
        return self._effects.finish()

    def set_channel(self, request: SetChannel) -> list[Send]:
        """Administrative override for a tag that this node keeps. Raises UnknownTag."""
        self._put_setting(request)
        return self._effects.finish()

    def _set_channel(self, client: Client, request: SetChannel, fds: list[Descriptor]) -> None:
        """Of a daemon without a network."""
        expect(fds, 0, request)
        routes.check_setting(request.at, request.transport, {self._table.node}, 0)
        routes.check_urgency(request.urgency)
        self._put_setting(request)
        self._effects.send(client.number, Done(id=request.id))

    def _put_setting(self, request: SetChannel) -> None:
        row = self._table.tag(request.tag)
        if row is None or row.primary != self._table.node:
            raise UnknownTag(request.tag)
        here = {subscriber_key(one.owner, one.info.id) for one in self._table.subscribers(row.name)}
        changed = settings.changed(
            row, request.node, request.at, request.transport, here, planned=request.planned, urgency=request.urgency
        )  # fmt: skip
        self._effects.note(self._table.put(changed))
        self._sharing.rematch(row.name)

    def _destroy(self, client: Client, request: DestroyTag, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        name = check_name(request.name)
        check_published(name, client.number == OWN_CLIENT)
        self.destroy(name, self._table.node, self.registrations_of(client.number), force=request.force)
        self._effects.send(client.number, Done(id=request.id))

    def registrations_of(self, client: int) -> set[int]:
        """The numbers of the publishers and subscribers that a client has."""
        holder = self._clients[client]
        return {ring.number for ring in holder.rings.values()} | {s.info.id for s in holder.subscriptions.values()}

    def destroy(self, name: str, node: str, rights: Collection[int], *, force: bool) -> None:
        """Remove a tag that this node keeps, for a client on `node`; its own registrations, `rights`, do not keep the
        tag.

        Raises UnknownTag, TagInUse.
        """
        if self._table.tag(name) is None:
            raise UnknownTag(name)
        # A wildcard is not registered on a tag; a history does not count as a subscriber.
        others = [row for row in self._table.publishers(name) if row.alive and not _among(row.info, node, rights)]
        readers = [row for row in self._table.subscribers(name) if not _among(row.info, node, rights)]
        subscribers = sum(row.info.pattern == name for row in readers)
        if (others or subscribers) and not force:
            raise TagInUse(name, len(others), subscribers)
        self.end(name)

    def end(self, name: str) -> None:
        """The tag ended: withdraw what this node has of it, and tell those who were registered on it."""
        held = self._sharing.subscriptions.exact(name)
        told = {s.client.number for s in held}
        for subscription in held:
            self._subscribers.drop(subscription)
        for ring in self._rings.matching(name):
            if ring.owner is not None:
                told.add(ring.owner)  # a mirror's owner is the mesh, which has no connection and is told nothing
                self._publishers.retire(ring, linger=False)
            else:
                self._sharing.forget(ring)
        self._effects.note(self._table.destroy(name))
        for number in sorted(told):
            self._effects.send(number, TagGone(name=name))

    def unused(self) -> list[str]:
        """Tags that this node keeps and nobody uses: no publisher, no ring of one that left, no subscriber by name."""
        table = self._table
        own = [row.name for row in table.tags("**") + table.tags("@ringcast/**") if row.primary == table.node]
        return [
            name for name in own
            if not table.publishers(name) and not any(row.info.pattern == name for row in table.subscribers(name))
        ]  # fmt: skip

    def expire(self, names: Iterable[str]) -> list[Send]:
        """End tags that nobody has used for long. Nobody is registered on them, so nobody is told."""
        for name in names:
            self.end(name)
        return self._effects.finish()

    def _list_tags(self, client: Client, request: ListTags, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        rows = []
        for row in self._table.tags(check_pattern(request.pattern)):
            if not self._rights.sees(client.who, row.name):
                continue
            publishers, subscribers = self._table.publishers(row.name), self._table.subscribers(row.name)
            nodes = {row.primary, *(p.owner for p in publishers), *(s.owner for s in subscribers)}
            if not request.local or self._table.node in nodes:
                rings = streams(self._rings.matching(row.name))
                rows.append(listing.tag_status(row, rings, publishers, subscribers))
        for page in listing.tag_pages(request.id, rows):
            self._effects.send(client.number, page)


def _among(info: PublisherInfo | SubscriberInfo, node: str, registrations: Collection[int]) -> bool:
    return info.node == node and info.id in registrations
