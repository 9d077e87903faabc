"""Which clients watch what comes and goes, and what they are told of it. Pure: `(request or presences) -> notices`.

Invariant: a watcher is told of everything that is there when it begins, and from then on of each coming and going that
its pattern and kinds select, in the order in which they happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ringcast.control.answers import Done
from ringcast.control.notices import Presences
from ringcast.control.refusal import refuse
from ringcast.control.requests import Unwatch, Watch
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.listing import presence_pages
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.table.rows import Change
from ringcast.errors import ResourceLimit, RingcastError
from ringcast.model.identity import Presence
from ringcast.model.tag import check_pattern, overlap

MAX_WATCHES = 256
"""Of one client."""


class Watchers:
    def __init__(self, liveliness: Liveliness) -> None:
        self.liveliness = liveliness
        self._watches: dict[int, dict[int, Watch]] = {}

    def handle(self, client: int, request: Watch | Unwatch) -> list[Send]:
        watches = self._watches.setdefault(client, {})
        if isinstance(request, Unwatch):
            watches.pop(request.watch, None)
            return [Send(client, Done(id=request.id))]
        try:
            check_pattern(request.pattern)
            if request.watch not in watches and len(watches) >= MAX_WATCHES:
                raise ResourceLimit(f"{MAX_WATCHES} watches of this program are open", "close some of them")
        except RingcastError as exc:
            return [Send(client, refuse(request.id, exc))]
        watches[request.watch] = request
        begin = _notices(request, self.liveliness.current(), anew=True)
        return [*(Send(client, notice) for notice in begin), Send(client, Done(id=request.id))]

    def changed(self, changes: Iterable[Change]) -> list[Send]:
        """This node's rows changed, and there is no mesh that would say what it means."""
        return self.told(self.liveliness.of_changes(changes))

    def told(self, presences: list[Presence]) -> list[Send]:
        """These came and went."""
        return [
            Send(client, notice)
            for client, watches in self._watches.items()
            for watch in watches.values()
            for notice in _notices(watch, presences)
        ]

    def keep(self, client: int, sees: Callable[[str], bool]) -> None:
        """End a client's watches of patterns that it may not see any more; whoever watches nodes only keeps that."""
        watches = self._watches.get(client, {})
        for number, watch in list(watches.items()):
            if any(kind != "node" for kind in watch.kinds) and not sees(watch.pattern):
                del watches[number]

    def leave(self, client: int) -> None:
        self._watches.pop(client, None)


def _notices(watch: Watch, presences: list[Presence], *, anew: bool = False) -> list[Presences]:
    return presence_pages(watch.watch, (row for row in presences if _selects(watch, row)), anew=anew)


def _selects(watch: Watch, presence: Presence) -> bool:
    if presence.kind not in watch.kinds:
        return False
    return presence.kind == "node" or overlap(watch.pattern, presence.topic)
