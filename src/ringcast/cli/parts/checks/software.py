"""The software itself: Python, the native core, the libraries beside it."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding, missing, ok

_LIBRARIES = {
    "msgspec": (True, "Control messages need it; install it with 'pip install msgspec'."),
    "numpy": (False, "Tags of codec numpy cannot be used; install it with 'pip install numpy'."),
    "rich": (False, "Tables on a terminal and the demo need it; install it with 'pip install rich'."),
}


def look() -> list[Finding]:
    return [_python(), _core(), *(_library(name, *rest) for name, rest in _LIBRARIES.items())]


def _python() -> Finding:
    value = f"{platform.python_implementation()} {platform.python_version()}"
    return ok("python", value, needed=True)  # an older one cannot even import this


def _core() -> Finding:
    remedy = "Build it with 'make setup' in the source tree, or 'pip install .'."
    try:
        from ringcast import _core
    except ImportError as exc:
        return missing("native core", str(exc), remedy, needed=True)
    built = Path(_core.__file__ or "").name if hasattr(_core, "__file__") else "built in"
    return ok("native core", f"{_version('ringcast')} ({built})", needed=True)


def _library(name: str, needed: bool, remedy: str) -> Finding:
    version = _version(name)
    if version is not None:
        return ok(name, version, needed=needed)
    return missing(name, "not installed", remedy, needed=needed)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
