"""Two daemons of one mesh on this machine, until this process ends: `two_nodes.py PORT SOCKET_A SOCKET_B`."""

from __future__ import annotations

import subprocess
import sys

from lifeline import die_with_parent

HOST = "127.0.0.1"


def main(port: str, *sockets: str) -> int:
    command = [sys.executable, "-m", "ringcast", "daemon", "--no-config", "--no-scout"]
    daemons = []
    for name, socket in zip("ab", sockets, strict=True):
        where = ["--listen", f"{HOST}:{port}"] if name == "a" else ["--listen", f"{HOST}:0", "--peer", f"{HOST}:{port}"]
        daemons.append(
            subprocess.Popen([*command, "--name", name, "--socket", socket, *where], preexec_fn=die_with_parent)
        )
    try:
        return daemons[0].wait()
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
