"""A ring whose bytes are overwritten at random by its own writer.

Its memory is sealed against everybody else, so the writer's process does it: it finds its own mapping and patches it.
Readers in another process report CorruptRing or a loss. They never crash, never loop for ever, and what they read from
other rings is not touched. The same, closer and faster, runs under sanitizers in native/tests/faults/test_damage.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

WRITER = """
import random, sys
from ringcast import _core

GEOMETRY = {"depth": 32, "capacity_bytes": 8192}
bad, good = _core.RingWriter(**GEOMETRY), None

def mapping():
    # The only writable mapping of a ring in this process: header, index and bytes, and the bytes once more.
    for line in open("/proc/self/maps"):
        if "memfd:ringcast-ring" in line and " rw-s " in line:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            return begin, bad.memory_bytes
    raise LookupError

begin, length = mapping()
good = _core.RingWriter(**GEOMETRY)
memory = open("/proc/self/mem", "r+b", buffering=0)
random = random.Random(int(sys.stdin.readline()))
NASTY = [0, 1, 2**63, 2**64 - 1, 2**64 - 8, 2**40 - 1, 4096, 8192]

def patch(offset, data):
    memory.seek(begin + offset)
    memory.write(data)

def word():
    return random.choice([random.choice(NASTY), random.getrandbits(64), bad.next_seq % 2**64]).to_bytes(8, "little")

def damage():
    kind = random.randrange(5)
    if kind == 0:    # claims and tail
        patch(64 + 8 * random.randrange(3), word())
    elif kind == 1:  # one field of one entry
        patch(4096 + 8 * random.randrange(64 * 8), word())
    elif kind == 2:  # a run of bytes anywhere
        patch(random.randrange(length - 256), random.randbytes(random.randrange(1, 256)))
    elif kind == 3:  # the whole index
        patch(4096, random.randbytes(64 * 64))
    else:            # the header, but for whose ring it is
        patch(64, random.randbytes(200))

for writer in (bad, good):
    print(writer.ring_fd, writer.bell_fd, writer.incarnation, flush=True)
for line in sys.stdin:
    for _ in range(random.randrange(1, 4)):
        damage()
        for _ in range(random.randrange(20)):
            bad.send(random.randbytes(random.randrange(2000)))
    if random.randrange(2):
        damage()
    good.send(line.encode())
    print("done", flush=True)
"""

READER = """
import collections, json, os, sys
from ringcast import _core
from ringcast.errors import CorruptRing, HistoryError, WouldBlock

GEOMETRY = {"depth": 32, "capacity_bytes": 8192}
pid = int(sys.stdin.readline())

def grant():
    ring_fd, bell_fd, incarnation = map(int, sys.stdin.readline().split())
    ring = os.open(f"/proc/{pid}/fd/{ring_fd}", os.O_RDONLY)
    bell = os.open(f"/proc/{pid}/fd/{bell_fd}", os.O_RDWR)
    return (ring, bell), {**GEOMETRY, "incarnation": incarnation}

bad, good = grant(), grant()
seen = collections.Counter()
reader = _core.RingReader()
reader.attach(*good[0], **good[1], publisher="good")

def attempt(name, call):
    try:
        call()
        seen[name] += 1
    except (CorruptRing, HistoryError, WouldBlock, TimeoutError) as error:
        seen[type(error).__name__] += 1

def drain(reader, most):
    for _ in range(most):
        try:
            message = reader.recv_nowait()
        except CorruptRing:
            seen["CorruptRing"] += 1
            continue
        except WouldBlock:
            return
        assert message.lost < 2**49
        yield message

print("ready", flush=True)
number = 0
for line in sys.stdin:
    attempt("attached", lambda: reader.attach(*bad[0], **bad[1], publisher="bad", start=_core.START_EARLIEST))
    attempt("newest", reader.newest)
    for message in drain(reader, 200):
        seen[message.publisher] += 1
        if message.publisher == "good":
            assert (message.seq, message.lost, message.data) == (number, 0, b"%d\\n" % number), message
            number += 1
    assert number == int(line) + 1
    for start in (_core.START_NEW, _core.START_LATEST, _core.START_EARLIEST, 0, 17, 2**62):
        for reliable in (False, True):
            joiner = _core.RingReader(reliable=reliable)
            attempt("joined", lambda: joiner.attach(*bad[0], **bad[1], start=start))
            seen["read"] += sum(1 for _ in drain(joiner, 100))
            attempt("many", lambda: joiner.recv_many(1000, timeout=0))
            attempt("lent", lambda: joiner.recv(copy=False, timeout=0).valid)
            joiner.close()
    history = _core.RingHistory()
    attempt("history", lambda: history.attach(bad[0][0], **bad[1]))
    if history.incarnations:
        attempt("bounds", history.bounds)
        attempt("range", lambda: history.range(0, 2**64 - 1))
        for back in (0, 1, 31, 32, 10**6):
            attempt("latest", lambda: history.latest(back))
        for seq in (0, 5, 100, 2**63, 2**64 - 1):
            attempt("at", lambda: history.at(seq))
    history.attach(good[0][0], **good[1])
    for back in (0, 3, 100):
        attempt("merged", lambda: history.latest(back))
    attempt("at", lambda: history.at(number - 1, good[1]["incarnation"]))
    print("done", flush=True)
    if number == 60:
        print(json.dumps(seen), flush=True)
"""


@pytest.mark.parametrize("seed", range(4))
def test_readers_survive_a_writer_that_damages_its_ring(run_program: Callable[..., Any], seed: int) -> None:
    writer, reader = run_program(WRITER, "unused"), run_program(READER, "unused")
    writer.tell(str(seed))
    reader.tell(str(writer.pid))
    for _ in range(2):
        reader.tell(writer.line())
    reader.expect("ready")
    for number in range(60):
        writer.tell(str(number))
        writer.expect("done")
        reader.tell(str(number))
        reader.expect("done")
    seen = json.loads(reader.line())
    assert seen["CorruptRing"] > 0
    assert seen["good"] == 60
    reader.end()
    writer.end()
