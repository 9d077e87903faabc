"""What other nodes may do here: the gate before the services of this daemon, and which of their rows count.

Invariant: no stream, history, buffer or setting goes to a node without the right, whoever asked on that node; rows of
nodes without the right are kept and passed on, and not believed here.
"""

from __future__ import annotations

from collections.abc import Callable

from ringcast.control import service
from ringcast.control.requests import SetChannel
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.clients.local import Local
from ringcast.daemon.table.rows import PublisherRow, Row, SubscriberRow
from ringcast.errors import NotAllowed
from ringcast.model.tag import matches
from ringcast.security.rules import ACTIONS, EVERYTHING, missing


class NodeRights:
    def __init__(self, local: Local, audit: Audit) -> None:
        self._local = local
        self._audit = audit

    def check(self, node: str, name: str, payload: bytes) -> None:
        """Before a service is done for a node. Raises NotAllowed, BadMessage."""
        if not self._local.rights.rules.about_nodes:
            return
        match name:
            case service.OPEN:
                self._check_stream(node, service.decode_untrusted(payload, service.OpenChannel).incarnation)
            case service.START:
                self._check_stream(node, service.decode_untrusted(payload, service.StartChannel).incarnation)
            case service.PULL:
                self._check(node, "pull", service.decode_untrusted(payload, service.Pull).tag)
            case service.HOLD:
                self._check(node, "pull", service.decode_untrusted(payload, service.Buffer).tag)
            case service.SET:
                self._check(node, "set", service.decode_untrusted(payload, SetChannel).tag)
            case service.DESTROY:
                self._check(node, "destroy", service.decode_untrusted(payload, service.DestroyTag).name)

    def may_receive(self, node: str, incarnation: int) -> bool:
        """Whether the stream of a publisher may go to a node."""
        tag = self._tag(incarnation)
        return tag is None or self._local.rights.rules.allows_node(node, "subscribe", tag)

    def may_pull(self, node: str, tag: str) -> bool:
        return self._local.rights.rules.allows_node(node, "pull", tag)

    def may_choose(self, node: str) -> bool:
        """Whether what it says of transports goes for all tags."""
        return self._local.rights.rules.allows_node(node, "set", EVERYTHING)

    def believer(self) -> Callable[[Row], bool]:
        """Whether a row of another node counts here, by the rules that are in force now."""
        rules = self._local.rights.rules

        def believes(row: Row) -> bool:
            if not rules.about_nodes:
                return True
            node = row.owner
            if isinstance(row, SubscriberRow):
                return rules.node_reaches(node, row.info.pattern)
            tag = row.info.tag if isinstance(row, PublisherRow) else row.name
            if matches(f"@ringcast/{node}/**", tag):
                return True
            needed = ("publish",) if isinstance(row, PublisherRow) else ACTIONS
            return any(rules.allows_node(node, action, tag) for action in needed)

        return believes

    def _check_stream(self, node: str, incarnation: int) -> None:
        tag = self._tag(incarnation)
        if tag is not None:
            self._check(node, "subscribe", tag)

    def _check(self, node: str, action: str, tag: str) -> None:
        if self._local.rights.rules.allows_node(node, action, tag):
            return
        here = self._local.table.node
        self._local.table.refused["node without a right"] += 1
        self._audit.note("node", node, action, tag, "no rule allows it")
        remedy = f"its administrator can allow it in ringcast.toml: {missing('node', node, action, tag)}"
        raise NotAllowed(f"node {node!r}", action, tag, here, remedy)

    def _tag(self, incarnation: int) -> str | None:
        ring = self._local.rings.of_incarnation(incarnation)
        if ring is not None:
            return ring.tag
        rows = self._local.table.all_publishers()
        return next((row.info.tag for row in rows if row.info.incarnation == incarnation), None)
