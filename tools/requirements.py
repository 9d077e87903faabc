"""Prints the project's requirements, one a line, so that pip can install them before the project itself.

The project is built without isolation (its build is kept for the next time), and pip would build every dependency that
way too: pyspark comes as source and cannot be. So dependencies are installed first, each built as it asks to be.

Usage: python tools/requirements.py EXTRA...
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
OWN_EXTRAS = re.compile(rf"{PROJECT['name']}\[(?P<extras>[^\]]+)\]")


def requirements(extras: list[str]) -> list[str]:
    """What the project and these extras of it require; extras that name other extras are followed."""
    found = list(PROJECT["dependencies"])
    for extra in extras:
        for requirement in PROJECT["optional-dependencies"][extra]:
            own = OWN_EXTRAS.fullmatch(requirement)
            found += requirements(own["extras"].split(",")) if own else [requirement]
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
