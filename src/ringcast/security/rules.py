"""Who may do what with which tags: rules, and the question whether one of them allows it. Pure.

A rule is for programs of this node (by user, group, program), for other nodes, or for whoever shows a token.
Invariants: what no rule allows is not allowed, but for the daemon's own user and root, who may do everything; a
wildcard needs one rule whose pattern covers all of it; while no rule names a node, nodes may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ringcast.model.policy import PREFIX as VIEWS
from ringcast.model.tag import covers, overlap

ACTIONS = ("publish", "subscribe", "pull", "create", "destroy", "set")
READING = ("subscribe", "pull")
EVERYTHING = "**"
EVERYBODY = "*"
ROOT = 0


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`None` says nothing of a kind; of those that it names, all have to fit."""

    users: tuple[int, ...] | None = None
    """Empty is every user."""
    groups: tuple[int, ...] | None = None
    programs: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    """`*` is every node."""
    tokens: tuple[str, ...] | None = None
    """Names of tokens, and not the tokens themselves."""
    may: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def for_programs(self) -> bool:
        return self.nodes is None and self.tokens is None

    def allows(self, action: str, pattern: str) -> bool:
        return action in self.may and any(covers(tags, pattern) for tags in self.tags)


class Who(NamedTuple):
    """A program of this node, as the kernel describes it; `program` is its executable, '' when that is not known."""

    uid: int
    gids: frozenset[int] = frozenset()
    program: str = ""
    user: str = ""

    def __str__(self) -> str:
        return f"user {self.user or self.uid}" + (f" with {self.program}" if self.program else "")


class Rules:
    """`own` is the daemon's user."""

    def __init__(self, rules: Iterable[Rule] = (), *, own: int) -> None:
        self._rules = tuple(rules)
        self._own = own
        self._for_programs = tuple(rule for rule in self._rules if rule.for_programs)
        self._for_nodes = tuple(rule for rule in self._rules if rule.nodes is not None)
        self._for_tokens = tuple(rule for rule in self._rules if rule.tokens is not None)

    @property
    def shared(self) -> bool:
        """Whether programs of other users may be allowed something."""
        return any(rule.users != (self._own,) for rule in self._for_programs)

    @property
    def about_nodes(self) -> bool:
        return bool(self._for_nodes)

    def is_owner(self, who: Who) -> bool:
        return who.uid in (self._own, ROOT)

    def allows(self, who: Who, action: str, pattern: str) -> bool:
        if self.is_owner(who):
            return True
        action, pattern = subject(action, pattern)
        return any(rule.allows(action, pattern) for rule in self._of(who))

    def allows_any(self, who: Who, pattern: str) -> bool:
        """Whether it may do something with the tags of a pattern, and so know of them."""
        return self.is_owner(who) or any(self.allows(who, action, pattern) for action in ACTIONS)

    def is_known(self, who: Who) -> bool:
        """Whether some rule is for it."""
        return self.is_owner(who) or any(True for _ in self._of(who))

    def allows_node(self, node: str, action: str, pattern: str) -> bool:
        if not self._for_nodes:
            return True
        action, pattern = subject(action, pattern)
        return any(
            rule.allows(action, pattern) for rule in self._for_nodes if {node, EVERYBODY} & set(rule.nodes or ())
        )

    def node_reaches(self, node: str, pattern: str) -> bool:
        """Whether some tag of a pattern may go to a node."""
        if not self._for_nodes:
            return True
        _, pattern = subject("subscribe", pattern)
        return any(
            "subscribe" in rule.may and any(overlap(tags, pattern) for tags in rule.tags)
            for rule in self._for_nodes
            if {node, EVERYBODY} & set(rule.nodes or ())
        )

    def allows_token(self, token: str, action: str, pattern: str) -> bool:
        action, pattern = subject(action, pattern)
        return any(rule.allows(action, pattern) for rule in self._for_tokens if token in (rule.tokens or ()))

    def token_may(self, token: str, action: str) -> bool:
        """Whether some rule lets a token do that with some tags."""
        return any(action in rule.may for rule in self._for_tokens if token in (rule.tokens or ()))

    def _of(self, who: Who) -> Iterator[Rule]:
        for rule in self._for_programs:
            if (
                (not rule.users or who.uid in rule.users)
                and (rule.groups is None or who.gids & set(rule.groups))
                and (rule.programs is None or who.program in rule.programs)
            ):
                yield rule


def subject(action: str, pattern: str) -> tuple[str, str]:
    """What a right is needed for. A view is what a proxy makes of a tag: who may subscribe to the tag may make and
    read it."""
    first, _, rest = pattern.partition("/")
    _, _, of = rest.partition("/")
    if first == VIEWS and of and action in ("create", *READING):
        return "subscribe", of
    return action, pattern


def missing(key: str, name: str, action: str, pattern: str) -> str:
    """The rule that would allow it, in one line of TOML."""
    action, pattern = subject(action, pattern)
    return f'[[rules]] {key} = "{name}", may = ["{action}"], tags = ["{pattern}"]'
