"""Makes .venv and builds the native core into it: what `make setup` runs. Standard library only; any system Python.

A step is skipped when what it was made from has not changed, so a second run does nothing and needs no network. A .venv
is made anew when an earlier failure left it half-made, when it was copied from another folder, and when it is of
another Python than the one asked for. Nothing outside .venv and build is written, but pip's cache where there is one.

Usage: python tools/set_up.py [--exactly]      with --exactly, .venv must be of this very Python version
       python tools/set_up.py --check          only says what is missing on this machine
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import prerequisites
from progress import Progress

ROOT = Path(__file__).resolve().parent.parent
VENV, BUILD = ROOT / ".venv", ROOT / "build"
CORE = BUILD / "core"
STATE, LOG = VENV / "set-up.json", VENV / "set-up.log"
BUILD_TOOLS = ["scikit-build-core", "nanobind", "ninja", "cmake"]


class Failed(Exception):
    """Its text says what to do."""


def main(arguments: list[str]) -> int:
    exactly = "--exactly" in arguments
    if sys.version_info >= prerequisites.OLDEST and "--check" not in arguments and _done(exactly):
        return 0
    if sentences := prerequisites.missing():
        print("\n".join(sentences), file=sys.stderr)
        return 1
    if "--check" in arguments:
        return 0
    BUILD.mkdir(exist_ok=True)
    # Two runs of make at once take turns; the second finds it done.
    with open(BUILD / ".set-up.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not _done(exactly):
                _set_up(exactly)
        except Failed as exc:
            print(f"set-up failed: {exc}", file=sys.stderr)
            return 1
    return 0


def _done(exactly: bool) -> bool:
    return _state() == _wanted() and usable(VENV, exactly)


def _set_up(exactly: bool) -> None:
    progress = Progress(3)
    if usable(VENV, exactly):
        progress.begin("the environment .venv is there")
    else:
        if sentence := prerequisites.no_space(ROOT):
            raise Failed(sentence)
        progress.begin(f"an environment in .venv, of Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        # What was compiled for another Python, or in another place, would be taken for ours.
        shutil.rmtree(CORE, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(VENV)])
    wanted = _wanted()
    if _state().get("dependencies") == wanted["dependencies"]:
        progress.begin("the libraries are there")
    else:
        progress.begin("libraries, Spark and a Java for it: some 650 MB, less what pip has in its cache")
        _remember(dependencies="")
        _install_dependencies(progress.hear)
        _remember(dependencies=wanted["dependencies"])
    progress.begin(f"the native core: {len(_native_sources())} files of C++")
    _remember(project="")
    _run([
        *_pip(), "--quiet", "--no-deps", "--no-build-isolation", f"--config-settings=build-dir={CORE}",
        "--editable", str(ROOT),
    ])  # fmt: skip
    _remember(project=wanted["project"])
    progress.end()


def _install_dependencies(hear: Callable[[str], None]) -> None:
    from requirements import requirements

    listed = VENV / "requirements.txt"
    listed.write_text("\n".join([*BUILD_TOOLS, *requirements(["dev"])]) + "\n")
    # With isolation: pyspark comes as source, and names what builds it. Older versions of pip would use what is there.
    options = ["--use-pep517", "--progress-bar=off", "--constraint", str(ROOT / "constraints.txt")]
    _run([*_pip(), *options, "--requirement", str(listed)], hear)


def usable(venv: Path, exactly: bool = False) -> bool:
    """Whether the environment is whole, made in this place, and of a Python that will do."""
    program = "import pip, sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([str(venv / "bin" / "python"), "-c", program], capture_output=True, text=True, timeout=60)
        configuration = (venv / "pyvenv.cfg").read_text()
    except (OSError, subprocess.SubprocessError):
        return False
    if done.returncode != 0:
        return False
    version = tuple(map(int, done.stdout.split()))
    # Its programs name the folder where it was made: in a copy they would run the original.
    here = any(line.startswith("command =") and line.endswith(f" {venv}") for line in configuration.splitlines())
    return here and version >= prerequisites.OLDEST and (not exactly or version == sys.version_info[:2])


def _wanted() -> dict[str, str]:
    """What the steps are made from, as digests."""
    pyproject = ROOT / "pyproject.toml"
    return {
        "dependencies": _digest([pyproject, ROOT / "constraints.txt"]),
        "project": _digest([pyproject, ROOT / "CMakeLists.txt", *_native_sources()]),
    }


def _native_sources() -> list[Path]:
    return sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in (".cpp", ".hpp"))


def _digest(paths: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _state() -> dict[str, str]:
    try:
        found = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(**digests: str) -> None:
    part = STATE.with_suffix(".part")
    part.write_text(json.dumps({**_state(), **digests}))
    part.replace(STATE)


def _pip() -> list[str]:
    return [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]


def _run(command: list[str], hear: Callable[[str], None] = lambda line: None) -> None:
    """Run it; what it says goes to `hear`, line by line, and to the log. Raises Failed, with the last lines."""
    environment = {**os.environ, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            hear(line)
    if VENV.is_dir():
        with open(LOG, "a") as log:
            log.writelines(lines)
    if process.returncode:
        said = "".join(lines[-25:]).rstrip()
        raise Failed(
            f"'{' '.join(command[1:4])}' ended with {process.returncode}:\n{said}\n"
            f"All of it is in {LOG.relative_to(ROOT)}; 'make setup' goes on where it stopped."
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
