"""Task sets that run: a daemon of our own and a set of processes, used again for every set.

Invariant: none of them outlives the `with` block.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from ringcast.admission.model import NS, System
from ringcast.admission.priorities import fifo_priorities
from ringcast.lab.bounds.outsiders import NONE
from ringcast.lab.bounds.parts import Message
from ringcast.lab.bounds.task_sets import MOST_STREAMS
from ringcast.lab.bounds.witness import Taken, Witnesses, undisturbed
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.local_mesh import local_mesh
from ringcast.lab.testbed.opened import Opened

_LEAD_NS = 200_000_000
_SPARE_S = 0.3
"""After the last period has begun: several times as long as the longest."""


class Measured(msgspec.Struct, frozen=True):
    """Of one stream: the messages that count, how many were left out because the witness saw a core taken away
    meanwhile, and how many never came."""

    tag: str
    messages: tuple[Message, ...]
    disturbed: int
    missing: int

    @property
    def longest_s(self) -> float:
        return max((one.delay for one in self.messages), default=0) / NS


class Process:
    def __init__(self, socket: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ringcast.lab.bounds.worker", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def post(self, do: str, **what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self._process.stdin.flush()

    def reply(self) -> Any:
        """Raises LabError."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LabError("a process of the task set has ended")
        answer = json.loads(line)
        if "failed" in answer:
            raise LabError(f"a process of the task set cannot go on: {answer['failed']}")
        return answer["done"]

    def pin(self, core: int) -> None:
        affinity.pin(self._process.pid, {core})

    def ask(self, do: str, **what: Any) -> Any:
        self.post(do, **what)
        return self.reply()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()


class Runner(Opened):
    """On one node."""

    _transport = ""

    def __init__(self, account: str = NONE) -> None:
        self._account = account

    def _open(self, stack: ExitStack) -> None:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ringcast-bounds-"))
        (node,) = stack.enter_context(local_mesh(("here",), Path(place)))
        self._ends = [stack.enter_context(_closing(Process(node.socket))) for _ in range(2 * MOST_STREAMS)]
        self._witnesses = stack.enter_context(Witnesses(self._account))

    def run(self, system: System, seconds: float) -> list[Measured]:
        """All streams begin a period at once: the worst that can happen. Raises LabError."""
        given = fifo_priorities(system)
        pairs = [(stream, self._ends[2 * i], self._ends[2 * i + 1]) for i, stream in enumerate(system.streams)]
        for stream, sender, receiver in pairs:
            receiver.ask("prepare", role="subscriber", tag=stream.tag, transport=self._transport)
            sender.ask("prepare", role="publisher", tag=stream.tag)
        self._prioritise(system, given)
        begin = time.monotonic_ns() + _LEAD_NS
        counts = [math.ceil(seconds / stream.period_s) for stream, _, _ in pairs]
        until = begin + round((seconds + _SPARE_S) * NS)
        for (stream, sender, receiver), count in zip(pairs, counts, strict=True):
            (reader,) = stream.subscribers
            receiver.post("subscribe", compute_ns=round(reader.compute_s * NS), count=count, fifo=given[stream.tag],
                          until_ns=until)  # fmt: skip
            sender.post("publish", period_ns=round(stream.period_s * NS), compute_ns=round(stream.compute_s * NS),
                        size=round(stream.bytes), begin_ns=begin, count=count, fifo=given[stream.tag],
                        until_ns=until)  # fmt: skip
        for _, sender, _ in pairs:
            sender.reply()
        seen = [receiver.reply() for _, _, receiver in pairs]
        taken = self._witnesses.seen()
        for _, *ends in pairs:
            taken += [(began, done) for end in ends for began, done in end.ask("finish")]
        tags = [stream.tag for stream, _, _ in pairs]
        return [judged(tag, rows, taken, count) for tag, rows, count in zip(tags, seen, counts, strict=True)]

    def _prioritise(self, system: System, given: dict[str, int]) -> None:
        """Threads of daemons that the streams pass: on one node, none."""


def judged(tag: str, rows: list[list[int]], taken: list[Taken], count: int) -> Measured:
    """Pure. Without the messages during which a core was taken away."""
    came = [Message(*row) for row in rows]
    whole = set(undisturbed([(one.began, one.done) for one in came], taken))
    kept = tuple(one for one in came if (one.began, one.done) in whole)
    return Measured(tag, kept, len(came) - len(kept), count - len(came))


class _closing:
    def __init__(self, process: Process) -> None:
        self._process = process

    def __enter__(self) -> Process:
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.close()
