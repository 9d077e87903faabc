"""A mistake in a configuration: where it is inside a key's value, and the words for it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ringcast.model.toml_lines import Path

_KINDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"
}  # fmt: skip


class Wrong(ValueError):
    """`path` leads from the key to the mistake inside its value."""

    def __init__(self, path: Path, words: str) -> None:
        super().__init__(words)
        self.path = path


def unknown(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
    return f"there is no key {name!r}; {hint}"


def shown(value: object) -> str:
    """A value as the file would have it, and short."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return _KINDS[type(value)]
    text = ("true" if value else "false") if isinstance(value, bool) else f'"{value}"'
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else text
    return text if len(text) <= 60 else text[:57] + "..."
