"""What does a page that reads at a tenth of the rate cost the gateway and the page beside it?

A gateway, and two pages of a real Chromium that subscribe to one stream. First both read everything; then one of them
takes a tenth of what comes. The rows compare the gateway's memory, the other page's loss and its delay from sending to
the application. No peers take part. Needs Chromium and what `make setup` installs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ringcast
from harness.rows import Row, at_most, plain

RATE_HZ, PAYLOAD_BYTES = 200.0, 20_000
GROWTH_MB = 8.0
"""The backlog of a page may hold 2 MiB; the rest is Python's and the allocator's."""
PAGE = """async ({ every }) => {
    const { connect } = await import('/ringcast/ringcast.js');
    window.session = await connect();
    window.sub = session.tag('bench/stream').subscribe();
    await sub.ready;
    window.delays = [];
    sub.onMessage(async (msg) => {
        delays.push(Date.now() - Number(msg.sentNs / 1000n) / 1000);
        if (every > 0) await new Promise((resolve) => setTimeout(resolve, every));
    });
}"""


@contextmanager
def gateway(place: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, its address, and the daemon's socket."""
    path = str(place / "daemon.sock")
    program = [sys.executable, "-m", "ringcast"]
    daemon = subprocess.Popen([*program, "daemon", "--no-config", "--socket", path], stdin=subprocess.DEVNULL)
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        served = subprocess.Popen(
            [*program, "gateway", "--socket", path, "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert served.stdout is not None
            yield served, json.loads(served.stdout.readline())["address"], path
        finally:
            served.terminate()
            served.wait(30)
    finally:
        daemon.terminate()
        daemon.wait(30)


def memory_mb(process: subprocess.Popen[str]) -> float:
    """Its own: the publisher's ring is mapped too, and all that was read of it."""
    resident, shared = Path(f"/proc/{process.pid}/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") / 1e6


def send(publisher: Any, seconds: float, look: Any) -> int:
    """At the rate, for so long; returns how many."""
    begin, count = time.monotonic(), 0
    while (now := time.monotonic() - begin) < seconds:
        while count < now * RATE_HZ:
            publisher.send(bytes(PAYLOAD_BYTES))
            count += 1
        look()
        time.sleep(0.5 / RATE_HZ)
    return count


def run(browser: Any, seconds: float, slow_ms: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as folder, gateway(Path(folder)) as (process, at, path):
        with ringcast.connect(path, start=False) as session:
            publisher = session.tag("bench/stream", capacity_bytes=2**24).publisher()
            pages = []
            for every in (0.0, slow_ms):
                page = browser.new_page()
                page.goto(f"{at}/ringcast/alive")
                page.evaluate(PAGE, {"every": every})
                pages.append(page)
            send(publisher, 2.0, lambda: None)
            for page in pages:
                page.evaluate("() => { delays.length = 0; window.before = sub.lost; }")
            most = before = memory_mb(process)

            def look() -> None:
                nonlocal most
                most = max(most, memory_mb(process))

            sent = send(publisher, seconds, look)
            pages[0].wait_for_timeout(1500)
            found = [page.evaluate("[delays, sub.lost - before]") for page in pages]
            for page in pages:
                page.close()
    delays = sorted(found[0][0])
    return {
        "sent": sent, "growth": most - before, "lost": found[0][1], "p95": delays[int(0.95 * (len(delays) - 1))],
        "share": len(found[1][0]) / sent, "slow p95": sorted(found[1][0])[int(0.95 * (len(found[1][0]) - 1))],
    }  # fmt: skip


def measure(seconds: float) -> list[Row]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), headless=True)
        both = run(browser, seconds, 0.0)
        slow = run(browser, seconds, 10 * 1000 / RATE_HZ)
        browser.close()
    return [
        at_most(
            "gateway's memory grew with a page that reads a tenth", slow["growth"], "MB", GROWTH_MB, both["growth"]
        ),
        plain("share of messages that the slow page took", 100 * slow["share"], "%"),
        plain("delay of what the slow page took, p95", slow["slow p95"], "ms"),
        plain("delay of the page beside it, p95", slow["p95"], "ms", both["p95"]),
        plain("messages that the page beside it lost", slow["lost"], "messages", both["lost"]),
        plain("messages sent", slow["sent"], "messages", both["sent"]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        print("ringcast bench slow-page needs Chromium: apt-get install chromium", file=sys.stderr)
        return 1
    rows = measure(5.0 if args.quick else 20.0)
    if args.json:
        fields = ("name", "value", "unit", "reference", "target", "met")
        print(json.dumps([{field: getattr(row, field) for field in fields} for row in rows], indent=1))
    else:
        for row in rows:
            beside = "" if row.reference is None else f" (when both read all: {row.reference})"
            print(f"{row.value:>10}  {row.unit:<10}{row.name}{beside}")
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
