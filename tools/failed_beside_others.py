"""Tries tests once more that failed while several things ran beside each other, now alone; says which need to be alone.

Two cores are few for that: a test that fails only there is unsteady, and named so that somebody repairs it. One
that fails again fails `make test`. More than a few at once are not luck, and are not tried again.

Usage: python tools/failed_beside_others.py FOLDER    FOLDER holds a file per run: names of tests (tests/failures.py)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FEW = 4


def failed_tests(folder: Path) -> list[str]:
    """The tests that failed, in order of their names."""
    found: set[str] = set()
    for path in folder.glob("*"):
        found |= set(path.read_text().splitlines())
    return sorted(found)


def tried_again(failed: list[str]) -> bool:
    """Whether so many failures may be a matter of load. Pure."""
    return 0 < len(failed) <= FEW and all("::" in name for name in failed)  # else a file could not even be read


def main(folder: str) -> int:
    failed = failed_tests(Path(folder))
    if not failed:
        return 0
    if not tried_again(failed):
        print(f"{len(failed)} tests failed:", *failed, sep="\n  ", flush=True)
        return 1
    print(f"{len(failed)} failed beside others; now alone:", *failed, sep="\n  ", flush=True)
    own = {key: value for key, value in os.environ.items() if key != "RINGCAST_FAILED"}
    status = subprocess.run([sys.executable, "-m", "pytest", *failed], env=own).returncode
    if status == 0:
        print("UNSTEADY, to be repaired: these passed only alone:", *failed, sep="\n  ", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
