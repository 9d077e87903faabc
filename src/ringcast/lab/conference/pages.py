"""Pages in a real Chromium: delay between worklets, a stall, a slow reader, a thin link, a network that goes away."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ringcast
from ringcast.lab.conference.people import TONES, Person, Served, chromium
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import pair

STALL_MS = 1_000
GOAL_MS = 80.0
BLOCK_MS = 32.0
AWAY_S = 5.0
_PATIENCE_S = 60.0


def near(quick: bool, steps: Steps) -> Findings:
    """Two pages on one machine; a page that reads at a tenth of the rate."""
    findings = Findings()
    steps.expect(3)
    with tempfile.TemporaryDirectory(prefix="ringcast-conference-") as place, Served(f"{place}/d.sock") as served:
        with chromium() as browser:
            steps.step("two pages")
            ada, bob = (
                Person(browser, served.address, name, hz) for name, hz in zip(("Ada", "Bob"), TONES, strict=False)
            )
            for person in (ada, bob):
                person.publish("audio")
            _until(lambda: ada.hears(bob) and bob.hears(ada))
            _delay(findings, ada, bob, 10.0 if quick else 30.0)
            steps.step("a stall")
            _stall(findings, ada)
            for person in (ada, bob):
                person.leave()
            steps.step("a page that reads at a tenth of the rate")
            _slow_reader(findings, served, browser, f"{place}/d.sock", 5.0 if quick else 15.0)
    return findings


def _delay(findings: Findings, ada: Person, bob: Person, seconds: float) -> None:
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ada.page.wait_for_timeout(2500)
        found += ada.delays_ms(64) + bob.delays_ms(64)
    p50, p95 = np.percentile(found, [50, 95])
    rows = findings.rows
    rows.append(at_most("capture worklet to playback worklet, two pages, p95", float(p95), "ms", GOAL_MS))
    rows.append(figure("capture worklet to playback worklet, two pages, p50", float(p50), "ms"))
    rows.append(figure("the same from a sample's capture (a block more), p95", float(p95) + BLOCK_MS, "ms"))


def _stall(findings: Findings, ada: Person) -> None:
    ada.page.evaluate(f"() => {{ const end = Date.now() + {STALL_MS}; while (Date.now() < end); }}")
    over = time.monotonic()
    while time.monotonic() - over < 10.0:
        newest = ada.delays_ms(8)
        if newest and max(newest) < GOAL_MS and time.monotonic() - over > 0.6:
            break
        ada.page.wait_for_timeout(50)
    back = time.monotonic() - over
    findings.rows.append(
        at_most(f"after a page stood still for {STALL_MS} ms: delay back below {GOAL_MS:g} ms", back, "s", 2)
    )


_READ_SLOWLY = """
async ({ name, pauseMs }) => {
  const { connect } = await import("/ringcast/ringcast.js");
  const session = await connect();
  const sub = session.tag(name).subscribe();
  await sub.ready;
  globalThis.slow = sub;
  (async () => {
    for await (const message of sub) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  })();
}
"""


def _slow_reader(findings: Findings, served: Served, browser: Any, socket: str, seconds: float) -> None:
    rate, size = 100, 50_000
    page = browser.new_page()
    page.goto(f"{served.address}/ringcast/alive")
    with ringcast.connect(socket, start=False) as session:
        # One of the conference's own: its gateway lets nobody near others.
        tag = session.tag("conference/main/whiteboard", codec="bytes", depth=4096, capacity_bytes=4 << 20)
        page.evaluate(_READ_SLOWLY, {"name": tag.name, "pauseMs": 10_000 / rate})
        subscriber = tag.subscribe()
        stop, received = threading.Event(), []
        publisher = tag.publisher()

        def publish() -> None:
            while not stop.wait(1 / rate):
                publisher.send(bytes(size))

        def read() -> None:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    received.append(subscriber.recv(timeout=0.2).seq)

        threads = [threading.Thread(target=work) for work in (publish, read)]
        for thread in threads:
            thread.start()
        page.wait_for_timeout(1000)
        before = served.memory_bytes()
        most = before
        for _ in range(int(seconds * 4)):
            page.wait_for_timeout(250)
            most = max(most, served.memory_bytes())
        stop.set()
        for thread in threads:
            thread.join()
        lost_there, got_there = page.evaluate("[slow.lost, slow.received]")
        page.close()
        sent = publisher.next_seq
        rows = findings.rows
        name = f"a page that reads a tenth of {rate} Hz of {size // 1000} kB: the gateway's memory grew by"
        rows.append(at_most(name, (most - before) / 2**20, "MiB", 16))
        rows.append(figure("what it got, of all", 100 * got_there / sent, "%"))
        rows.append(figure("what it was told that it lost, of all", 100 * lost_there / sent, "%"))
        rows.append(at_most("meanwhile another subscriber lost", subscriber.lost, "messages", 0))


# -------------------------------------------------------------------- behind a link


@contextmanager
def _far(place: str) -> Iterator[tuple[Testbed, Served, Any, str]]:
    """A gateway on node a, a browser on node b, one wire between them."""
    socket = f"{place}/d.sock"
    with Testbed(pair()) as bed, ExitStack() as stack:
        listen = f"{bed.node('a').address()}:8470"
        served = stack.enter_context(Served(socket, listen, bed.node("a").command))
        script = Path(place, "chromium-on-b")
        script.write_text(f'#!/bin/sh\nexec {" ".join(bed.node("b").command)} chromium "$@"\n')
        script.chmod(0o755)
        secure = f"--unsafely-treat-insecure-origin-as-secure=http://{listen}"
        browser = stack.enter_context(chromium(secure, executable=str(script)))
        yield bed, served, browser, socket


def far(quick: bool, steps: Steps) -> Findings:
    """A network that goes away for five seconds; 100 kbit/s. Raises LabError."""
    findings = Findings()
    steps.expect(2)
    with (
        tempfile.TemporaryDirectory(prefix="ringcast-conference-") as place,
        _far(place) as (bed, served, browser, socket),
    ):
        steps.step("a network that goes away")
        with _voices(socket, TONES[1:2], video=True):
            ada = Person(browser, served.address, "Ada", TONES[0])
            ada.publish("audio")
            _until(lambda: bool(ada.frames()) and ada.strengths(TONES[1])[0] > 0.02)
            _recovery(findings, bed, ada, socket)
        steps.step("a thin link")
        with _voices(socket, TONES[1:]):
            _until(lambda: min(ada.strengths(*TONES[1:])) > 0.02)
            _thin(findings, bed, ada, socket, 20.0 if quick else 40.0)
        ada.leave()
    return findings


_FLOWING = """() => ({
  heard: [...conference.voice.speakers.values()].reduce((sum, one) => sum + one.blocks, 0),
  seen: [...conference.tiles.values()].reduce((sum, one) => sum + one.frames, 0),
})"""


def _recovery(findings: Findings, bed: Testbed, ada: Person, socket: str) -> None:
    with ringcast.connect(socket, start=False) as session:
        tag = session.tag("conference/main/audio")
        mine = ada.value("String(conference.link.publishers.get('audio').info.incarnation)")
        subscriber = tag.subscribe()
        bed.link("a", "b").cut()
        ada.page.wait_for_timeout(AWAY_S * 1000)
        with contextlib.suppress(TimeoutError):
            while True:
                subscriber.recv_many(1000, timeout=0)
        before = ada.value(_FLOWING)
        bed.link("a", "b").restore()
        restored = time.monotonic()
        back: dict[str, float] = {}
        while len(back) < 3 and time.monotonic() - restored < 20:
            now = ada.value(_FLOWING)
            for name in ("heard", "seen"):
                if now[name] > before[name] + 2:
                    back.setdefault(name, time.monotonic() - restored)
            with contextlib.suppress(TimeoutError):
                for message in subscriber.recv_many(1000, timeout=0.02):
                    if str(message.publisher.incarnation) == mine:
                        back.setdefault("sent", time.monotonic() - restored)
    for name, what in (("heard", "others are heard"), ("seen", "others are seen"), ("sent", "this page is heard")):
        findings.rows.append(at_most(f"after {AWAY_S:g} s without network: {what} again", back.get(name), "s", 2))


def _thin(findings: Findings, bed: Testbed, ada: Person, socket: str, seconds: float) -> None:
    command = [sys.executable, "-m", "ringcast", "conference", "--headless", "--socket", socket, "--json"]
    bed.link("a", "b").set_rate("100kbit")
    with subprocess.Popen([*command, "--seconds", str(seconds - 5)], stdout=subprocess.PIPE, text=True) as beside:
        ada.page.wait_for_timeout(seconds * 1000)
        newest = ada.delays_ms(16)
        loud = max(ada.strengths(*TONES[1:]))
        said = ada.text("#thin")
        assert beside.stdout is not None
        account = json.loads(beside.stdout.read().splitlines()[-1])
    bed.link("a", "b").set_rate(None)
    rows = findings.rows
    delay = max(newest) if newest else None
    rows.append(at_most(f"100 kbit/s, three speakers of 64 kbit/s: delay after {seconds:g} s", delay, "ms", 1000))
    rows.append(
        at_least("it hears who speaks: strength of the loudest tone (0.4 was sent)", loud, "of full scale", 0.02)
    )
    rows.append(at_least("the page says that its link is thin", float("Your link is thin" in said), "yes", 1))
    rows.append(at_most("meanwhile, on the near side of the link: blocks lost", account["lost"], "blocks", 0))
    findings.notes.append(f"the page on 100 kbit/s said: {said}")


@contextmanager
def _voices(socket: str, tones: Sequence[int], video: bool = False) -> Iterator[None]:
    """Headless participants that speak without pause."""
    command = [sys.executable, "-m", "ringcast", "conference", "--headless", "--socket", socket, "--seconds", "600"]
    command += ["--video", "test" if video else "none", "--json"]
    processes = [
        subprocess.Popen([*command, "--name", f"{hz} Hz", "--audio", f"tone:{hz}"], stdout=subprocess.PIPE)
        for hz in tones
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise ringcast.BrokenError(f"the pages did not hear and see each other within {_PATIENCE_S:g} s")
        time.sleep(0.1)
