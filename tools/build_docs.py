"""Builds the documentation site into out/site: what `make docs` runs.

The packages of the extra `docs` are installed into .venv when they are not there: only those who build the site need
them. A warning (a link or an anchor that leads nowhere, a page that nothing leads to) is a failure.

Usage: .venv/bin/python tools/build_docs.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from requirements import requirements

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    if not pinned():
        print("docs: installing mkdocs and what it needs into .venv", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        if subprocess.run([*pip, "--constraint", "constraints.txt", *requirements(["docs"])], cwd=ROOT).returncode:
            return 1
    status = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=ROOT).returncode
    if not status:
        print("docs: out/site/index.html")
    return status


def pinned() -> bool:
    """Whether the extra's packages are here, in the versions of constraints.txt."""
    versions = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    wanted = {re.split(r"[\[><=]", line)[0] for line in requirements(["docs"])} - {"ringcast"}
    try:
        return all(metadata.version(name) == versions.get(name, metadata.version(name)) for name in wanted)
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main())
