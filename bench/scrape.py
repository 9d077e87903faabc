"""How long does a scrape of a daemon's metrics take with a thousand channels, and does it hold the daemon up?

Two nodes on this machine, a thousand publishers on one, a subscriber to all of them on the other. While the second is
scraped over and over, a client asks its daemon for its status, as it did before without scrapes. 'Held up' is what the
daemon itself measures: the longest time that taking a snapshot kept its loop from other work. No peers take part.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ringcast
from harness.rows import Row, at_most, plain

SCRAPE_MS = 50.0
HELD_UP_MS = 5.0
LIMIT_S = 120.0
BATCH = 20
"""Opening channels is not what is asked here."""
SLICE = "ringcast_snapshot_longest_slice_seconds"


def addresses(number: int) -> list[str]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]


@contextmanager
def daemon(name: str, place: Path, *options: str) -> Iterator[str]:
    path = str(place / f"{name}.sock")
    command = [
        sys.executable,
        "-m",
        "ringcast",
        "daemon",
        "--no-config",
        "--name",
        name,
        "--no-scout",
        "--socket",
        path,
    ]
    process = subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL)
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        yield path
    finally:
        process.terminate()
        process.wait(30)


def await_channels(session: ringcast.Session, number: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while len(session.channels()) < number:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(session.channels())} of {number} channels opened within {LIMIT_S:g} s")
        time.sleep(0.1)


class Scrapes:
    """One after the other until `stop`, a pause between."""

    def __init__(self, address: str) -> None:
        self.ms: list[float] = []
        self.held_up_ms: list[float] = []
        self.cpu_s: list[float] = []
        self.text = b""
        self._url = f"http://{address}/metrics"
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.05):
            begin = time.perf_counter()
            with urllib.request.urlopen(self._url, timeout=30) as answer:
                self.text = answer.read()
            self.ms.append((time.perf_counter() - begin) * 1e3)
            self.held_up_ms.append(value(self.text, SLICE) * 1e3)
            self.cpu_s.append(value(self.text, "process_cpu_seconds_total"))


def value(text: bytes, name: str) -> float:
    return next(float(line.split()[1]) for line in text.decode().splitlines() if line.startswith(name + " "))


def status_ms(session: ringcast.Session, seconds: float) -> list[float]:
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        session.status()
        found.append((time.perf_counter() - begin) * 1e3)
        time.sleep(0.002)
    return found


def share(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def measure(channels: int, seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as folder, ExitStack() as stack:
        one, two, metrics = addresses(3)
        sender = stack.enter_context(daemon("one", Path(folder), "--listen", one))
        receiver = stack.enter_context(
            daemon("two", Path(folder), "--listen", two, "--peer", one, "--metrics", metrics)
        )
        here = stack.enter_context(ringcast.connect(sender, start=False))
        there = stack.enter_context(ringcast.connect(receiver, start=False))
        subscriber = there.subscribe("bench/**")
        publishers = []
        for i in range(channels):
            publishers.append(here.tag(f"bench/{i}", depth=16, capacity_bytes=4096).publisher())
            if len(publishers) % BATCH == 0:
                await_channels(there, len(publishers))
        await_channels(there, channels)
        for publisher in publishers:
            publisher.send(b"x" * 64)
        for _ in publishers:
            subscriber.recv(timeout=LIMIT_S)
        before = status_ms(there, seconds)
        scrapes = Scrapes(metrics)
        during = status_ms(there, seconds)
        scrapes.stop()
        subscriber.close()
    samples = sum(not line.startswith(b"#") for line in scrapes.text.splitlines())
    return [
        at_most(f"scrape with {channels} channels, p50", share(scrapes.ms, 0.5), "ms", SCRAPE_MS, None),
        plain(f"scrape with {channels} channels, p99", share(scrapes.ms, 0.99), "ms"),
        at_most("held the daemon's loop up at most", max(scrapes.held_up_ms), "ms", HELD_UP_MS, None),
        plain(
            "CPU of the daemon for a scrape and the status requests beside it",
            1e3 * (scrapes.cpu_s[-1] - scrapes.cpu_s[0]) / max(1, len(scrapes.cpu_s) - 1),
            "ms",
        ),
        plain("status request while scraped, p50", share(during, 0.5), "ms", share(before, 0.5)),
        plain("status request while scraped, p99", share(during, 0.99), "ms", share(before, 0.99)),
        plain("samples in a scrape", samples, "samples"),
        plain("scrapes", len(scrapes.ms), "scrapes"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    parser.add_argument("--channels", type=int, default=1000, metavar="N")
    args = parser.parse_args()
    rows = measure(args.channels, 3.0 if args.quick else 15.0)
    if args.json:
        fields = ("name", "value", "unit", "reference", "target", "met")
        print(json.dumps([{field: getattr(row, field) for field in fields} for row in rows], indent=1))
    else:
        for row in rows:
            print(
                f"{row.value:>10}  {row.unit:<10}{row.name}" + (f" (without: {row.reference})" if row.reference else "")
            )
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
