"""What a machine must have before set-up can begin, and which package brings it. Standard library only.

Runs on any Python 3.8, so that one which is too old is told so instead of failing on syntax.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

OLDEST = (3, 11)
FREE_BYTES = 2_500_000_000
"""What .venv and build take, pip's unpacking included."""

# Name of the package on Debian, Fedora and Arch; {python} is such as python3.11.
_PACKAGES = {
    "a C++20 compiler": ("g++", "gcc-c++", "gcc"),
    "the header Python.h": ("{python}-dev", "python3-devel", "python"),
    "Python's module venv with ensurepip": ("{python}-venv", "python3", "python"),
}
_PROGRAM = "#include <atomic>\n#include <concepts>\nint main() { return 0; }\n"


def missing() -> list[str]:
    """One sentence for each thing that is not there."""
    if sys.version_info < OLDEST:
        return [_python_is_old()]
    found = [what for what, there in _CHECKS.items() if not there()]
    sentences = [_remedy(what) for what in found]
    if sys.platform != "linux":
        sentences.append("Ringcast is made for Linux: rings are memfds that futexes wake")
    return sentences


def no_space(folder: Path) -> str | None:
    """A sentence when there is too little room in the folder."""
    free = shutil.disk_usage(folder).free
    if free >= FREE_BYTES:
        return None
    return f"set-up needs {FREE_BYTES / 1e9:.1f} GB in {folder}, and {free / 1e9:.1f} GB are free"


def compiler() -> str | None:
    """The C++ compiler that CMake will take."""
    named = os.environ.get("CXX")
    candidates = [named.split()[0]] if named else ["c++", "g++", "clang++"]
    return next((path for name in candidates if (path := shutil.which(name))), None)


def _compiles() -> bool:
    program = compiler()
    if program is None:
        return False
    command = [program, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    try:
        return subprocess.run(command, input=_PROGRAM.encode(), capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _has_header() -> bool:
    return any(Path(sysconfig.get_path(name), "Python.h").exists() for name in ("include", "platinclude"))


def _has_venv() -> bool:
    # Debian splits both off, and `import venv` works without its other half.
    return all(importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip"))


_CHECKS = {
    "a C++20 compiler": _compiles,
    "the header Python.h": _has_header,
    "Python's module venv with ensurepip": _has_venv,
}


def _remedy(what: str) -> str:
    debian, fedora, arch = (name.format(python=f"python3.{sys.version_info[1]}") for name in _PACKAGES[what])
    return f"set-up needs {what}: install {debian} (Debian: apt-get), {fedora} (Fedora: dnf) or {arch} (Arch: pacman)"


def _python_is_old() -> str:
    ours, oldest = ".".join(map(str, sys.version_info[:3])), ".".join(map(str, OLDEST))
    return (
        f"Ringcast needs Python {oldest} or newer, and {sys.executable} is {ours}: name "
        "another Python with 'make setup PYTHON=python3.12', or install one from your system's packages"
    )
