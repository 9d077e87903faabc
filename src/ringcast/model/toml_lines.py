"""On which line of a TOML file each key stands. Pure.

`tomllib` gives values without lines. A TOML file is a row of statements, and every statement is a TOML file by itself:
so statements are told apart by `tomllib` too, and nothing here knows about quotes, comments or nesting. The text must
be one that `tomllib` reads.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

Path = tuple[str | int, ...]

_AT = re.compile(r"\(at line (\d+), column \d+\)")


def lines_of(text: str) -> dict[Path, int]:
    """{path: line, from 1}. A path has names, and numbers for the tables of an array; a value that spans lines has the
    line of its key."""
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    statement: list[str] = []
    first = 1
    for number, line in enumerate(text.splitlines(), 1):
        statement.append(line)
        try:
            parsed = tomllib.loads("\n".join(statement))
        except tomllib.TOMLDecodeError:
            continue  # its value goes on in the next line
        begin, first, statement = first, number + 1, []
        if not parsed:
            continue
        if line.lstrip().startswith("[") and begin == number:
            table = _header(parsed, counts)
            _note(found, table, begin)
        else:
            for path in _paths(parsed):
                _note(found, table + path, begin)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of the path, or of the innermost key around it that has one; 1 when none has."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def line_of_error(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """The line that a syntax error names, and its words without it. At the end of the file it is the last line."""
    found = _AT.search(str(error))
    words = _AT.sub("", str(error)).replace("(at end of document)", "before the file ended").strip()
    return (int(found[1]) if found else max(1, len(text.splitlines()))), words


def _header(parsed: dict[str, Any], counts: dict[Path, int]) -> Path:
    """The path of `[a.b]` or `[[a.b]]`; inside an array of tables the last one is meant."""
    path: Path = ()
    here: Any = parsed
    while here:
        if isinstance(here, list):
            counts[path] = counts.get(path, -1) + 1
            return (*path, counts[path])
        ((name, here),) = here.items()
        path = (*path, name)
        if path in counts and here and not isinstance(here, list):
            path = (*path, counts[path])
    return path


def _paths(value: dict[str, Any]) -> list[Path]:
    found: list[Path] = []
    for name, inner in value.items():
        found.append((name,))
        if isinstance(inner, dict):
            found += [(name, *path) for path in _paths(inner)]
        elif isinstance(inner, list):
            for number, item in enumerate(inner):
                if isinstance(item, dict):
                    found += [(name, number), *((name, number, *path) for path in _paths(item))]
    return found


def _note(found: dict[Path, int], path: Path, line: int) -> None:
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], line)
