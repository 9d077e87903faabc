"""The table of limits in docs/protocol.md is the one in the code, and the reasons that it names are counted."""

from __future__ import annotations

import re
from pathlib import Path

from ringcast.control import limits

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| `([A-Z_]+)` \| ([0-9_* ]+) \| (.+) \|")


def rows() -> list[tuple[str, str, str]]:
    page = (ROOT / "docs" / "protocol.md").read_text()
    section = page[page.index("## What a daemon believes") :]
    return [found.groups() for line in section.splitlines() if (found := ROW.fullmatch(line))]  # type: ignore[misc]


def test_the_table_has_every_limit_with_its_value() -> None:
    documented = {name: eval(value, {"__builtins__": {}}) for name, value, _ in rows()}
    assert documented == {name: value for name, value in vars(limits).items() if name.isupper()}


def test_the_reasons_named_are_those_counted() -> None:
    named = {reason for *_, effect in rows() for reason in re.findall(r"`([a-z ]+)`", effect)} - {"ringcast set"}
    source = "".join(path.read_text() for path in (ROOT / "src" / "ringcast" / "daemon").rglob("*.py"))
    assert len(named) >= 10
    assert [reason for reason in named if f'"{reason}"' not in source] == []
