"""Brings the system's programs that some tests need: as root on Debian by apt-get, saying so first; else it names them.

SYSTEM=no forbids the installation. A test whose program is missing is skipped, and listed at the end of `make test`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable

# Program: its package on Debian, Fedora and Arch.
PROGRAMS = {
    "ip": ("iproute2", "iproute", "iproute2"),
    "tc": ("iproute2", "iproute-tc", "iproute2"),
    "iptables": ("iptables", "iptables-nft", "iptables"),
    "ip6tables": ("iptables", "iptables-nft", "iptables"),
    "strace": ("strace", "strace", "strace"),
    "systemd-analyze": ("systemd", "systemd", "systemd"),
    "zsh": ("zsh", "zsh", "zsh"),
    "fish": ("fish", "fish", "fish"),
    "chromium": ("chromium", "chromium", "chromium"),
    "node": ("nodejs", "nodejs", "nodejs"),
}
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def missing(search: str = SEARCH) -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=search) is None]


def packages(programs: Iterable[str], system: int) -> str:
    """The packages to install, each once; `system` counts Debian, Fedora, Arch. Pure."""
    return " ".join(dict.fromkeys(PROGRAMS[name][system] for name in programs))


def main() -> int:
    lacking = missing()
    if not lacking:
        return 0
    allowed = os.environ.get("SYSTEM", "").lower() != "no"
    if allowed and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(packages(lacking, 0).split())
        lacking = missing()
    if lacking:
        debian, fedora, arch = (packages(lacking, system) for system in range(3))
        print(
            f"tests that need {', '.join(lacking)} will be skipped: apt-get install {debian} (Debian; 'make test' as "
            f"root does it), dnf install {fedora} (Fedora), pacman -S {arch} (Arch)",
            flush=True,
        )
    return 0


def _install(names: list[str]) -> None:
    print(f"installing {' '.join(names)} with apt-get, for tests that need them (SYSTEM=no forbids it)", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *names]
    # The package lists of a fresh machine are empty or stale.
    for command in (["apt-get", "update"], install):
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            print(
                f"'{' '.join(command)}' ended with {done.returncode}: {done.stderr.strip()}",
                file=sys.stderr,
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
