"""Tokens of web pages and of those who read metrics, and the rules that are bound to them.

A file has both, the tokens as fingerprints, so that reading it gives nobody a token:

    [tokens]
    dashboard = "sha256:..."

    [[rules]]
    token = "dashboard"
    may = ["subscribe", "pull"]
    tags = ["lab/**"]

Invariant: with such a file, whoever has no token gets nothing, and who has one what its rules say.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ringcast.daemon.operate.mistakes import Wrong, unknown
from ringcast.daemon.operate.rule_tables import rules
from ringcast.errors import BadConfiguration, NotAllowed
from ringcast.model.toml_lines import line_of, line_of_error, lines_of
from ringcast.security.rules import ACTIONS, Rule, Rules, missing

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_NOBODY = -1


class Permit:
    """What whoever showed a token may do; with `rules` None, everything that the program behind it may."""

    def __init__(self, token: str = "", rules: Rules | None = None, known: str = "") -> None:
        self.token = token
        """Its name; '' where nobody has to show one."""
        self._rules = rules
        self._known = known
        """Its fingerprint."""

    @classmethod
    def limited(cls, may: Iterable[str], *tags: str) -> Permit:
        """For somebody without a token, who may do this with these tags."""
        return cls("", Rules((Rule(tokens=("",), may=tuple(may), tags=tags),), own=_NOBODY))

    def __str__(self) -> str:
        return f"token {self.token!r}" if self.token else "somebody without a token"

    @property
    def is_whole(self) -> bool:
        """Whether it may do everything."""
        return self._rules is None

    def allows(self, action: str, pattern: str) -> bool:
        return self._rules is None or self._rules.allows_token(self.token, action, pattern)

    def may(self, action: str) -> bool:
        """Whether there is some tag with which it may do that."""
        return self._rules is None or self._rules.token_may(self.token, action)

    def sees(self, pattern: str) -> bool:
        """Whether it may know of the tags of a pattern."""
        return any(self.allows(action, pattern) for action in ACTIONS)

    def check(self, action: str, pattern: str) -> None:
        """Raises NotPermitted."""
        if not self.allows(action, pattern):
            raise NotPermitted(self, action, pattern)

    def check_sees(self, pattern: str) -> None:
        """Raises NotPermitted."""
        if not self.sees(pattern):
            raise NotPermitted(self, "subscribe", pattern)

    def under(self, permits: Permits) -> Permit | None:
        """The same token's by other rules; None when it is not good any more."""
        return permits.named(self.token, self._known)


class NotPermitted(NotAllowed):
    """No rule of a file of tokens allows it."""

    def __init__(self, permit: Permit, action: str, pattern: str) -> None:
        rule = missing("token", permit.token or "NAME", action, pattern)
        remedy = f"its operator can allow it in the gateway's --rules: {rule}"
        super().__init__(str(permit), action, pattern, "gateway", remedy)


class Permits:
    """`tokens` are fingerprints, by the name of the token."""

    def __init__(self, tokens: Mapping[str, str], made: tuple[Rule, ...]) -> None:
        self._tokens = dict(tokens)
        self._rules = Rules(made, own=_NOBODY)

    def of(self, token: str) -> Permit | None:
        """Of whoever shows this token; None when there is none like it."""
        shown, found = fingerprint(token), None
        for name, known in self._tokens.items():  # all of them, so that time tells nothing
            if hmac.compare_digest(shown, known):
                found = Permit(name, self._rules, known)
        return found

    def named(self, name: str, known: str) -> Permit | None:
        """Of a token that was shown before; None when there is none of that name and fingerprint."""
        return Permit(name, self._rules, known) if self._tokens.get(name) == known else None


def fingerprint(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode(errors='replace')).hexdigest()}"


def new_token() -> str:
    return secrets.token_urlsafe(32)


def read(path: Path) -> Permits:
    """Raises BadConfiguration, with the line of the mistake."""
    try:
        text = path.read_text()
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line, reason = line_of_error(exc, text)
        raise BadConfiguration(str(path), line, f"this is not TOML: {reason[:1].lower()}{reason[1:]}") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise BadConfiguration(str(path), 0, f"it cannot be read: {exc}") from exc
    lines = lines_of(text)
    try:
        for name in parsed:
            if name not in ("tokens", "rules"):
                raise Wrong((name,), unknown(name, {"tokens": None, "rules": None}))
        tokens = _tokens(parsed.get("tokens", {}))
        made = _rules(parsed.get("rules", []), tokens)
    except Wrong as exc:
        raise BadConfiguration(str(path), line_of(lines, exc.path), str(exc)) from exc
    return Permits(tokens, made)


def _tokens(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Wrong(("tokens",), 'tokens must be a table that begins with [tokens], with name = "sha256:..."')
    for name, held in value.items():
        if not isinstance(held, str) or not _FINGERPRINT.fullmatch(held):
            raise Wrong(("tokens", name), f"token {name!r} must be what 'ringcast gateway --new-token' printed")
    return value


def _rules(value: object, tokens: Mapping[str, str]) -> tuple[Rule, ...]:
    try:
        made = rules(value)
    except Wrong as exc:
        raise Wrong(("rules", *exc.path), str(exc)) from exc
    except ValueError as exc:
        raise Wrong(("rules",), f"rules must be {exc}") from exc
    for number, rule in enumerate(made):
        for token in rule.tokens or ():
            if token not in tokens:
                raise Wrong(("rules", number), f"there is no token {token!r} in [tokens]")
        if rule.tokens is None:
            raise Wrong(("rules", number), "a rule in this file says for which token it is: token = NAME")
    return made
