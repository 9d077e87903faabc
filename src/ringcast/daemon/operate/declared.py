"""Tags and transports that the configuration declares, put in force on a running node.

Declared tags are there before anybody opens them. Rules for transports become settings of the tags that this node
keeps, as `ringcast set` makes them. Invariant: what `ringcast set` decided is not undone by reloading; a rule replaces
only what a rule had put there.
"""

from __future__ import annotations

import logging
from typing import Any

from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.operate.configuration import Rule, settings_for
from ringcast.errors import TagError

logger = logging.getLogger("ringcast.daemon")


class Declared:
    def __init__(self, local: Local) -> None:
        self._local = local
        self._rules: tuple[Rule, ...] = ()

    def apply(self, tags: dict[str, dict[str, Any]], rules: tuple[Rule, ...]) -> list[Send]:
        """Returns what clients are to be told."""
        before, self._rules = self._rules, rules
        out: list[Send] = []
        for row in self._local.table.tags():
            old, new = settings_for(before, row.name), settings_for(rules, row.name)
            if row.primary == self._local.table.node and old != new:
                kept = {node: held for node, held in row.settings.items() if old.get(node) != held}
                out += self._local.tags.put_settings(row, new | kept)
        for name, attributes in tags.items():
            try:
                out += self._local.tags.declare(name, attributes)
            except TagError as exc:
                logger.warning("tag %s differs from the configuration: %s", name, exc)
        return out
