"""Says which situations `make test` did not test, and how to get them: its last lines.

Each run of pytest leaves a file in the folder: a line of JSON per reason (tests/skips.py writes it).

Usage: python tools/untested.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def summary(skipped: list[tuple[str, list[str]]]) -> list[str]:
    """Lines for people: reasons, most tests first. Pure."""
    tests: dict[str, set[str]] = {}
    for reason, names in skipped:
        tests.setdefault(reason, set()).update(names)
    if not tests:
        return []
    lines = [f"not tested here: {sum(map(len, tests.values()))} tests"]
    for reason, names in sorted(tests.items(), key=lambda item: (-len(item[1]), item[0])):
        files = sorted({name.partition("::")[0].rpartition("/")[2].removesuffix(".py") for name in names})
        shown = ", ".join(files[:4]) + (f" and {len(files) - 4} more files" if len(files) > 4 else "")
        lines.append(f"  {len(names)} {'test' if len(names) == 1 else 'tests'} ({shown}): {reason}")
    lines.append("'make test' as root on Debian installs programs that are missing, and tests all of it")
    return lines


def main(folder: str) -> int:
    found = []
    for path in sorted(Path(folder).glob("*")):
        found += [(row["reason"], row["tests"]) for row in map(json.loads, path.read_text().splitlines())]
    print("\n".join(summary(found)) or "tested: every situation", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
