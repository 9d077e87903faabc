"""What somebody may not do. Pure."""

from __future__ import annotations

from ringcast.errors.base import RingcastError


class NotAllowed(RingcastError):
    """No rule of the daemon lets `who` do it. `remedy` has the rule that would."""

    def __init__(self, who: str, action: str, what: str, node: str, remedy: str) -> None:
        self.who = who
        self.action = action
        self.what = what
        self.node = node
        self.remedy = remedy
        super().__init__(f"{who} may not {action} {what!r} on node {node!r}; {remedy}")
