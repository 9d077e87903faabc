"""The software itself: Python, the native core, the libraries beside it."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding

_LIBRARIES = {
    "msgspec": (True, "Control messages need it; install it with 'pip install msgspec'."),
    "numpy": (False, "Tags of codec numpy cannot be used; install it with 'pip install numpy'."),
    "rich": (False, "Tables on a terminal and the demo need it; install it with 'pip install rich'."),
}


def look() -> list[Finding]:
    return [_python(), _core(), *(_library(name, *rest) for name, rest in _LIBRARIES.items())]


def _python() -> Finding:
    value = f"{platform.python_implementation()} {platform.python_version()}"
    return Finding(name="python", state="ok", value=value, needed=True)  # an older one cannot even import this


def _core() -> Finding:
    remedy = "Build it with 'make setup' in the source tree, or 'pip install .'."
    try:
        from ringcast import _core
    except ImportError as exc:
        return Finding(name="native core", state="missing", value=str(exc), remedy=remedy, needed=True)
    built = Path(_core.__file__ or "").name if hasattr(_core, "__file__") else "built in"
    return Finding(name="native core", state="ok", value=f"{_version('ringcast')} ({built})", needed=True)


def _library(name: str, needed: bool, remedy: str) -> Finding:
    version = _version(name)
    if version is not None:
        return Finding(name=name, state="ok", value=version, needed=needed)
    return Finding(name=name, state="missing", value="not installed", remedy=remedy, needed=needed)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
