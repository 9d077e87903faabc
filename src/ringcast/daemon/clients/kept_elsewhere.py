"""Changes of tags that another node keeps: this node asks it, and does the same for others.

Invariant: only the node that keeps a tag destroys it or changes its settings; whoever asked is answered when it is
done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ringcast.control import service
from ringcast.control.limits import MAX_SETTINGS_PER_TAG
from ringcast.control.requests import DestroyTag, SetChannel
from ringcast.control.service import Nothing
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.priority.agreement import Agreement
from ringcast.daemon.streams import routes
from ringcast.daemon.table.admission import is_receiver
from ringcast.daemon.table.rows import Change, ChangeKind, TagRow
from ringcast.daemon.table.system_tags import check_published
from ringcast.errors import BadMessage, BrokenError, QosMismatch, ResourceLimit, UnknownTag
from ringcast.model.place import Setting, check_place
from ringcast.model.priority import read
from ringcast.model.tag import check_name

REQUEST_TIMEOUT_S = 2.0


class KeptElsewhere:
    """`on_changed` is called when the table was changed for another node."""

    def __init__(
        self, local: Local, mesh: Mesh, deliver: Callable[[list[Send]], None], on_changed: Callable[[], None],
        agreement: Agreement,
    ) -> None:  # fmt: skip
        self._local = local
        self._mesh = mesh
        self._deliver = deliver
        self._on_changed = on_changed
        self._agreement = agreement
        self._gone: dict[str, list[asyncio.Future[None]]] = {}
        mesh.serve(service.SET, self._set)
        mesh.serve(service.DESTROY, self._destroy)

    def keeper(self, tag: str) -> str | None:
        """The other node that keeps a tag; None when it is this one, or nobody does."""
        row = self._local.table.tag(tag)
        return row.primary if row is not None and row.primary != self._local.table.node else None

    # ------------------------------------------------------------------ settings

    async def set_channel(self, request: SetChannel) -> list[str]:
        """An administrative override; the node that keeps the tag stores it. A priority is in force on return, or as
        soon as its node can. Returns warnings. Raises UnknownTag, QosMismatch, BrokenError, TimeoutError."""
        row = self._local.table.tag(request.tag)
        if row is None:
            raise UnknownTag(request.tag)
        nodes = {node.name for node in self._mesh.nodes() if node.state == "here"}
        reliable = sum(subscriber.info.reliable for subscriber in self._local.table.subscribers(request.tag))
        routes.check_setting(request.at, request.transport, nodes, reliable)
        routes.check_urgency(request.urgency)
        routes.check_receiver(request, self._local.table.subscribers(request.tag))
        warnings = await self._agreement.check(request)
        before = row.settings.get(request.node, Setting()).priority
        refused = await self._store(request, row.primary, request.urgency.applied(before))
        if refused:
            had = read(before)
            back = SetChannel(
                id=request.id, tag=request.tag, node=request.node, priority=had.level, dscp=had.dscp, sched=had.sched,
                bandwidth=had.bandwidth,
            )  # fmt: skip
            await self._store(back, row.primary, before)
            what = f"the priority {request.urgency.applied(before)!r} for the channels of {request.tag!r}"
            raise QosMismatch(what, "; ".join(refused), "choose a smaller share, or release another reservation")
        return warnings

    async def _store(self, request: SetChannel, keeper: str, words: str) -> list[str]:
        """Have it stored by the node that keeps the tag. What it returns is why it is not in force."""
        if keeper == self._local.table.node:
            self._put_setting(request)
        else:
            await self._mesh.request(keeper, service.SET, service.encode(request), REQUEST_TIMEOUT_S)
        return await self._agreement.settle(request, words) if request.urgency else []

    async def _set(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, SetChannel)
        check_name(request.tag)
        if (request.node and not is_receiver(request.node)) or not _is_setting(request):
            raise BadMessage(f"a setting for node {request.node[:80]!r} at {request.at!r} by {request.transport!r}")
        self._put_setting(request)
        return service.encode(Nothing())

    def _put_setting(self, request: SetChannel) -> None:
        row = self._local.table.tag(request.tag)
        if row is not None and request.node not in row.settings and len(row.settings) >= MAX_SETTINGS_PER_TAG:
            full = f"tag {request.tag!r} has settings for {len(row.settings)} nodes, the most that a tag may have"
            raise ResourceLimit(full, "take some back with 'ringcast set TAG --node NAME --at auto'")
        self._deliver(self._local.tags.set_channel(request))
        self._on_changed()

    # ------------------------------------------------------------------ destroying

    async def destroy(self, client: int, request: DestroyTag, keeper: str) -> None:
        """Have a tag removed by the node that keeps it, and wait until this one has seen it go.

        Raises UnknownTag, TagInUse, BrokenError, BadTagName (it is a daemon's own).
        """
        check_published(request.name, own=False)
        own = sorted(self._local.tags.registrations_of(client))
        asked = service.DestroyTag(name=request.name, rights=own, force=request.force)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gone.setdefault(request.name, []).append(gone)
        try:
            await self._mesh.request(keeper, service.DESTROY, service.encode(asked), REQUEST_TIMEOUT_S, once=True)
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await gone
        except TimeoutError as exc:
            raise BrokenError(
                f"node {keeper!r}, which keeps tag {request.name!r}, does not answer; try again when 'ringcast nodes' "
                "shows it, or it is gone and another has taken the tag over"
            ) from exc
        finally:
            waiting = self._gone.get(request.name, [])
            if gone in waiting:
                waiting.remove(gone)

    async def _destroy(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, service.DestroyTag)
        check_name(request.name)
        keeper = self.keeper(request.name)
        if keeper is not None:
            raise BrokenError(f"tag {request.name!r} has just changed hands; node {keeper!r} keeps it now. Try again")
        check_published(request.name, own=False)  # no other node may end what this daemon publishes
        self._local.tags.destroy(request.name, node, request.rights, force=request.force)
        self._deliver(self._local.changed([]))
        self._on_changed()
        return service.encode(Nothing())

    def changed(self, changes: list[Change]) -> None:
        """The table changed: tags that somebody here waits for may be gone."""
        for kind, row in changes:
            if kind is ChangeKind.REMOVED and isinstance(row, TagRow):
                for future in self._gone.pop(row.name, []):
                    future.set_result(None)


def _is_setting(request: SetChannel) -> bool:
    try:
        place = not request.at or bool(check_place(request.at))
        request.urgency.check()
    except ValueError:
        return False
    return place and (request.at or "").isprintable() and (request.transport or "").isprintable()
