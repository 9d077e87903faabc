"""How cost grows with one ring: its depth, and the size of its messages."""

from __future__ import annotations

import os
import time
from pathlib import Path

import ringcast
from growth.curve import Curves
from growth.holders import daemon
from growth.probes import KIB, US, Found, best, median_of, memory_bytes, per_message

DEPTHS = (16, 100, 1000, 10_000, 100_000, 1_000_000)
SIZES = (1, 64, KIB, 16 * KIB, 256 * KIB, 4 << 20, 64 << 20, 256 << 20)


def depths(place: Path, most: int) -> Found:
    """Messages that a ring holds."""
    curves = Curves("ring depth")
    with daemon(place) as (path, pid), ringcast.connect(path, start=False) as session:
        for n in [depth for depth in DEPTHS if depth <= most]:
            name = f"depth/{n}"
            before = _memory(pid)
            tag = session.tag(name, depth=n, capacity_bytes=64 * n)
            _take_up(curves, n, session, tag)
            with tag.publisher() as pub, tag.subscribe() as sub:
                for _ in range(n + n // 2):
                    pub.send(b"x" * 16)
                cost = US * best(lambda pub=pub, sub=sub: per_message(pub, sub, 1000))
                curves.add(n, "cost per message", cost, "us", "constant")
                history = tag.history(publisher=pub)
                oldest, newest = history.bounds()
                middle = (oldest + newest) // 2
                pulled = median_of(lambda history=history, middle=middle: history.at(middle), 200)
                curves.add(n, "find a message by its number", US * pulled, "us", "logarithmic")
                memory = (_memory(pid) - before) / n
                curves.add(n, "memory per message held", memory, "B", "constant", grows_from=1000)
            tag.destroy()
    yield from curves


def sizes(place: Path, most: int) -> Found:
    """Bytes of a message: written once, read without a copy."""
    curves = Curves("bytes of a message")
    with daemon(place) as (path, pid), ringcast.connect(path, start=False) as session:
        for n in [size for size in SIZES if size <= most]:
            before = _memory(pid)
            tag = session.tag(f"size/{n}", depth=2, capacity_bytes=max(4096, 2 * n + 4096))
            _take_up(curves, n, session, tag)
            with tag.publisher() as pub, tag.subscribe() as sub:
                data = bytes(n)

                def once(
                    pub: ringcast.Publisher[bytes] = pub, sub: ringcast.Subscriber[bytes] = sub, data: bytes = data
                ) -> float:
                    begin = time.perf_counter()
                    pub.send(data)
                    sub.recv_nowait(copy=False)
                    return time.perf_counter() - begin

                # The kernel brings a ring's pages when they are first written, in both of its mappings: four messages.
                for _ in range(4):
                    once()
                curves.add(n, "cost per message", US * best(once, 20 if n < 1 << 24 else 6), "us", "linear", 16 * KIB)
                memory = (_memory(pid) - before) / n
                curves.add(n, "memory per byte of the message", memory, "B", "constant", 256 * KIB)
            tag.destroy()
    yield from curves


def _take_up(curves: Curves, n: int, session: ringcast.Session, tag: ringcast.Tag[bytes]) -> None:
    """A ring that is not touched costs the same, however large."""
    made = median_of(tag.publisher, 21, lambda pub: pub.close())
    curves.add(n, "making a publisher", US * made, "us", "constant")
    with tag.publisher():
        subscribed = median_of(tag.subscribe, 21, lambda sub: sub.close())
        curves.add(n, "subscribe to a tag", US * subscribed, "us", "constant")
    found = median_of(lambda: session.tag(tag.name, create=False), 51)
    curves.add(n, "find a tag", US * found, "us", "constant")


def _memory(pid: int) -> int:
    return memory_bytes(pid) + memory_bytes(os.getpid())
