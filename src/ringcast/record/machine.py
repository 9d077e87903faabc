"""What figures were measured on, in one line, and by which code.

A release has one version, and a checkout has many builds of it: a digest tells them apart. It is of files by name and
content, so equal code is equal wherever it lies.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata, util
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
NATIVE = ("ringcast._core", "ringcast._lab")
"""Built elsewhere, where the package is used from a checkout."""
PROGRAM = "recovery_bench"
"""Beside them, in a checkout."""
SHOWS_RESULTS = ("lab", "report")
"""A folder that makes none: a sentence in the report changes no figure."""
_NO_SOURCES = ("__pycache__",)


def this_machine() -> str:
    """Model, cores that this process may use, memory, system and Python."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return (
        f"{model}, {cores} cores, {memory} GiB RAM, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def measured_on() -> str:
    """The same as a note beside figures."""
    return f"measured on {this_machine()}"


@cache
def code_version() -> str:
    """Of all that may change what is measured, as it is when this is called first: before anything is measured."""
    built = [Path(spec.origin) for name in NATIVE if (spec := util.find_spec(name)) and spec.origin]
    built += [program for path in built[:1] if (program := path.with_name(PROGRAM)).exists()]
    return f"{metadata.version('ringcast')}+{digest(PACKAGE, SHOWS_RESULTS, built)}"


def digest(root: Path, leave_out: tuple[str, ...] = (), more: Iterable[Path] = ()) -> str:
    """Of all sources below a folder, but for one folder in it, and of files from elsewhere. Raises OSError."""
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if _counts(path, root, leave_out)}
    found |= {path.name: path for path in more}
    whole = hashlib.blake2b(digest_size=5)
    for name, path in sorted(found.items()):
        whole.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return whole.hexdigest()


def _counts(path: Path, root: Path, leave_out: tuple[str, ...]) -> bool:
    parts = path.relative_to(root).parts
    left_out = bool(leave_out) and parts[: len(leave_out)] == leave_out
    return path.is_file() and path.suffix != ".so" and not left_out and not set(parts) & set(_NO_SOURCES)
