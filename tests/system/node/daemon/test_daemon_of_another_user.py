"""At the place of the daemon's socket answers a process of another user: a session says so and tells it nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import ringcast

NOBODY = 65534

IMPOSTOR = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
client, _ = listener.accept()
print(len(client.recv(100)), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as another user")
@pytest.mark.parametrize("start", [False, True])
def test_it_is_told_nothing(start: bool) -> None:
    place = Path("/tmp") / f"ringcast-impostor-{os.getpid()}-{int(start)}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    path = place / "d.sock"
    try:
        with subprocess.Popen(
            ["/usr/bin/env", "python3", "-c", IMPOSTOR, str(path)], stdout=subprocess.PIPE, user=NOBODY, cwd="/",
        ) as impostor:  # fmt: skip
            assert impostor.stdout is not None
            assert impostor.stdout.readline() == b"listening\n"
            with pytest.raises(ringcast.ForeignDaemon) as caught:
                ringcast.connect(socket=path, start=start)
            assert caught.value.uid == NOBODY
            assert impostor.stdout.readline() == b"0\n"
    finally:
        for left in place.iterdir():
            left.unlink()
        place.rmdir()
