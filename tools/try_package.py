"""Builds sdist and wheel into out/dist as `python -m build` does, and tries each in a bare environment of its own.

Tried are: the import and how long it takes, the first program, the small demo; and that the wheel has in it what it
should, and no more. The wheel is built from the sdist, with build isolation. The sdist is then installed without
optimisation, which takes a third of the time and shows the same: that nothing is missing in it.

Usage: python tools/try_package.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "out" / "dist"
IMPORTS = 10

_IMPORT = "import time; t = time.perf_counter_ns(); import ringcast; print((time.perf_counter_ns() - t) / 1e6)"


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    print("package: building sdist, and wheel from it", flush=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)])
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        if wrong := misfits(archive.namelist()):
            print(f"package: {wheel.name}: {'; '.join(wrong)}", file=sys.stderr)
            return 1
    for path, options in ((wheel, []), (sdist, ["--config-settings=cmake.build-type=Debug"])):
        print(f"package: {path.name}, {path.stat().st_size / 1e6:.1f} MB, in a bare environment", flush=True)
        with tempfile.TemporaryDirectory(prefix="ringcast-package-") as folder:
            took = _try(path, options, Path(folder))
        print(f"package: {path.name} works; import ringcast in {took:.0f} ms, best of {IMPORTS}", flush=True)
    return 0


def misfits(names: list[str]) -> list[str]:
    """What should be in a wheel and is not, and the other way round. Pure."""
    wanted = {
        "the native core": any(name.startswith("ringcast/_core.") and name.endswith(".so") for name in names),
        "the lab's native module": any(name.startswith("ringcast/_lab.") and name.endswith(".so") for name in names),
        "ringcast/py.typed": "ringcast/py.typed" in names,
        "ringcast/_core.pyi": "ringcast/_core.pyi" in names,
        "the licence": any(name.endswith("/licenses/LICENSE") for name in names),
    }
    missing = [f"{what} is missing" for what, there in wanted.items() if not there]
    ours = [name for name in names if not name.startswith(("ringcast/", "ringcast-"))]
    surplus = [name for name in names if name.endswith((".a", ".o", ".hpp", ".cpp", "_bench", ".pyc"))]
    return missing + [f"{name} should not be there" for name in [*ours, *surplus]]


def _try(package: Path, options: list[str], folder: Path) -> float:
    """Install and use it as a newcomer would; the best time of an import in ms."""
    _run([sys.executable, "-m", "venv", str(folder / "bare")])
    python, ringcast = folder / "bare" / "bin" / "python", folder / "bare" / "bin" / "ringcast"
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, str(package)], folder)
    environment = {"RINGCAST_SOCKET": str(folder / "daemon.sock")}
    said = _run([python, ROOT / "examples" / "first_program.py"], folder, environment)
    if "latest: 21.6" not in said:
        raise SystemExit(f"package: the first program said {said!r}")
    _run([ringcast, "demo", "--small", "--seconds", "3"], folder, environment)
    return min(float(_run([python, "-c", _IMPORT], folder)) for _ in range(IMPORTS))


def _run(command: list[str | Path], folder: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    # What this project's own environment has must not be able to help.
    own = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env={**own, **(environment or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(
            f"package: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
