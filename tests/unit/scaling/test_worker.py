"""The process of a stage whose daemon ends before it can answer."""

from __future__ import annotations

import socket
import subprocess
import sys

from ringcast import _core
from ringcast.control import link
from ringcast.control.notices import StageWanted
from ringcast.model.tag import TagAttributes


def test_a_daemon_that_ends_while_a_stage_begins_is_no_mistake_to_report() -> None:
    writer = _core.RingWriter(depth=8, capacity_bytes=1 << 16)
    daemon, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wanted = StageWanted(
        publisher=1, stage=1, attributes=TagAttributes(codec="image"), size=(4, 4), every=1, first_seq=0, passed=0,
        reliable=False, ring=writer.incarnation, depth=8, capacity_bytes=1 << 16,
    )  # fmt: skip
    with daemon, theirs:
        link.send(daemon, wanted, (writer.ring_fd, writer.bell_fd))
        daemon.close()
        worker = [sys.executable, "-m", "ringcast.scaling.worker", str(theirs.fileno())]
        ended = subprocess.run(worker, pass_fds=(theirs.fileno(),), capture_output=True, text=True, timeout=60)
    assert ended.stderr == ""
    writer.close()
