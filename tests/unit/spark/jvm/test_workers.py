"""Python processes of Spark's Java, forked when Java is about to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from processes import wait_for_exit

from ringcast.spark.jvm.workers import Workers

ROOT = """
import os, signal, subprocess, sys
leader = subprocess.Popen([sys.executable, "-c", '''
import os, signal
os.setpgid(0, 0)
print("here", flush=True)
input()  # one more is wanted, and the leader ends
if os.fork() == 0:
    print(os.getpid(), flush=True)
    signal.sigwait({signal.SIGUSR1})
'''], preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}))
leader.wait()
"""


@pytest.mark.parametrize("ends_by_itself", [True, False])
def test_who_was_forked_after_the_last_look_is_waited_for(ends_by_itself: bool) -> None:
    root = subprocess.Popen([sys.executable, "-c", ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert root.stdin is not None
    assert root.stdout is not None
    with root.stdin, root.stdout:
        assert root.stdout.readline() == "here\n"
        workers = Workers(root.pid)
        assert len(workers.alive()) == 1
        root.stdin.write("\n")
        root.stdin.flush()
        late = int(root.stdout.readline())
        root.wait()
        assert workers.alive() == [late]
        if ends_by_itself:
            os.kill(late, signal.SIGUSR1)
        workers.await_end(30.0 if ends_by_itself else 0.0)
        assert wait_for_exit(late, 0.0)
        assert workers.alive() == []
