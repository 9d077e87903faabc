"""A publisher writes garbage into its own ring, header and index included, without pause, while it is read on its node,
on another node and from its history: readers report it, no daemon fails, and streams beside it are complete.

The native readers under the address sanitizer: native/tests/faults/test_damage.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S

GARBAGE = """
import random, sys, threading
import ringcast
from ringcast import _core

random = random.Random(17)
session = ringcast.connect(start=False)
publisher = session.tag("bad", depth=32, capacity_bytes=8192).publisher()
for line in open("/proc/self/maps"):
    if "memfd:ringcast-ring" in line and " rw-s " in line:
        begin = int(line.split("-")[0], 16)
        break
memory = open("/proc/self/mem", "r+b", buffering=0)
NASTY = [0, 1, 2**63, 2**64 - 1, 2**64 - 8, 2**40 - 1, 4096, 8192]

def patch(offset, data):
    memory.seek(begin + offset)
    memory.write(data)

def damage():
    word = random.choice([*NASTY, random.getrandbits(64)]).to_bytes(8, "little")
    kind = random.randrange(4)
    if kind == 0:
        patch(64 + 8 * random.randrange(3), word)         # claims and tail
    elif kind == 1:
        patch(4096 + 8 * random.randrange(64 * 8), word)  # a field of an entry
    elif kind == 2:
        patch(4096, random.randbytes(64 * 64))            # the whole index
    else:
        patch(0, random.randbytes(400))                   # the header, with whose ring it is

publisher.wait_for_subscribers(2)
for number in range(50):
    publisher.send(random.randbytes(random.randrange(1500)))
print("begun", flush=True)
sys.stdin.readline()  # readers have the ring
ending = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ending.set()), daemon=True).start()
while not ending.is_set():
    damage()
    for _ in range(random.randrange(5)):
        try:
            publisher.send(random.randbytes(random.randrange(1500)))
        except ringcast.RingcastError:
            pass
print("ended", flush=True)
"""


def pulled(tag: ringcast.Tag[Any], at: str) -> None:
    """Something, or an error of ours in words."""
    try:
        with tag.history(at=at) as history:
            history.latest()
            history.since(0)
    except ringcast.RingcastError:
        pass


@pytest.mark.parametrize("transport", ["tcp", "nak"])
def test_others_are_complete_and_no_daemon_fails(
    victims: Callable[..., list[Any]], run_program: Callable[..., Any], eventually: Callable[..., None], transport: str
) -> None:
    near, far = victims("near", "far")
    good = near.session.tag("good").publisher()
    eventually(lambda: far.knows("good"))
    readers = [one.session.subscribe("good", reliable=True, transport="tcp") for one in (near, far)]
    near.session.tag("bad", depth=32, capacity_bytes=8192)
    eventually(lambda: far.knows("bad"))
    spoilt = [near.session.subscribe("bad"), far.session.subscribe("bad", transport=transport)]
    program = run_program(GARBAGE, near.daemon.socket_path)
    assert program.line() == "begun"
    for reader in spoilt:
        reader.recv(PATIENCE_S)
    program.tell("go")
    for number in range(100):
        good.send(b"%d" % number)
        for reader in spoilt:
            try:
                for _ in range(1000):
                    reader.recv_nowait()
            except ringcast.RingcastError:
                pass
        if number % 20 == 0:
            for one in (near, far):
                pulled(one.session.tag("bad"), "publisher")
    for reader in readers:
        assert [bytes(reader.recv(PATIENCE_S).data) for _ in range(100)] == [b"%d" % n for n in range(100)]
        assert reader.stats().lost == 0
    program.tell("end")
    assert program.line() == "ended"
    for one in (near, far):
        assert one.session.status().mistakes == 0
        assert one.daemon.process.poll() is None
    counted = [reader.counters() for reader in spoilt]
    assert any(found.get("corrupt", 0) or found.get("lost", 0) for found in counted), counted
