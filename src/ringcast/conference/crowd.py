"""Many headless participants, each a process, that begin together: for load and for tests.

Invariant: none outlives the call.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from ringcast.conference.headless import Account
from ringcast.errors import BrokenError

READY_S = 120.0
LEAD_S = 1.0
LINGER_S = 20.0
_END_S = 60.0


def run(
    sockets: Sequence[str], number: int, seconds: float, *,
    audio: Callable[[int], str] = lambda at: f"tone:{300 + 20 * at}", words: Sequence[str] = (),
) -> list[Account]:  # fmt: skip
    """`number` participants, in turn at the daemons of `sockets`, with `audio(at)` each. `words` are further arguments
    of `ringcast conference`. Raises BrokenError."""
    processes = []
    try:
        for at in range(number):
            command = [sys.executable, "-P", "-m", "ringcast", "conference", "--headless", "--json", "--no-start"]
            command += ["--socket", sockets[at % len(sockets)], "--name", f"speaker {at}", "--audio", audio(at)]
            command += ["--seconds", str(seconds), "--begin", "-", "--linger", str(LINGER_S), *words]
            processes.append(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
                )
            )
        _await_ready(processes)
        begin = time.time() + LEAD_S
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{begin}\n")
            process.stdin.close()
        return [_account(process, seconds + _END_S) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def _await_ready(processes: Sequence[subprocess.Popen[str]]) -> None:
    def give_up() -> None:
        for process in processes:
            process.kill()

    late = threading.Timer(READY_S, give_up)
    late.daemon = True
    late.start()
    try:
        for process in processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line or not json.loads(line).get("ready"):
                raise BrokenError(f"a participant did not start within {READY_S:g} s; what it said stands above")
    finally:
        late.cancel()


def _account(process: subprocess.Popen[str], patience_s: float) -> Account:
    assert process.stdout is not None
    try:
        # `communicate` would look at the closed standard input; there is one line to read.
        line = process.stdout.readline()
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        raise BrokenError("a participant did not end") from None
    if process.returncode or not line:
        raise BrokenError(f"a participant ended with {process.returncode}; what it said stands above")
    return msgspec.json.decode(line, type=Account)


def missing(accounts: Sequence[Account]) -> int:
    """Blocks that somebody sent and somebody else did not receive."""
    return sum(sum(missed(account, accounts)) for account in accounts)


def missed(account: Account, accounts: Sequence[Account]) -> list[int]:
    """Blocks that the others sent, each of them, and this participant did not receive."""
    others = (other for other in accounts if other.participant != account.participant)
    return [other.sent - account.received.get(f"{other.participant:08x}", 0) for other in others]
