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

import ringcast
from ringcast.lab.conference.cells import Page, told, values
from ringcast.lab.conference.people import TONES, Person, Served, chromium
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import pair
from ringcast.record.figures import Measured

STALL_MS = 1_000
GOAL_MS = 80.0
BLOCK_MS = 32.0
AWAY_S = 5.0
RATE_HZ, SIZE = 100, 50_000
TWO_PAGES = "two pages"
STALLED = f"after a page stood still for {STALL_MS} ms: delay back below {GOAL_MS:g} ms"
SLOW_READER = "a page that reads a tenth"
THIN_LINK = "100 kbit/s, three speakers of 64 kbit/s"
METRICS = ("delay", "back", "grown", "sent", "got", "told_lost", "lost", "strength", "said_thin")
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
            findings.measured += _delay(ada, bob, 10.0 if quick else 30.0)
            steps.step("a stall")
            findings.measured += _stall(ada)
            for person in (ada, bob):
                person.leave()
            steps.step("a page that reads at a tenth of the rate")
            findings.measured += _slow_reader(served, browser, f"{place}/d.sock", 5.0 if quick else 15.0)
    findings.rows += judged(sampled.InPython(findings.measured))
    return findings


def judged(analysed: Analysed) -> list[Row]:
    """Of the samples of the last run."""
    rows = []
    found = {metric: told(analysed, metric, Page) for metric in METRICS}
    for cell, delay in found["delay"].items():
        if cell.what == TWO_PAGES:
            name = "capture worklet to playback worklet, two pages"
            rows.append(at_most(f"{name}, p95", delay["p95"], "ms", GOAL_MS))
            rows.append(figure(f"{name}, p50", delay["p50"], "ms"))
            rows.append(figure("the same from a sample's capture (a block more), p95", delay["p95"] + BLOCK_MS, "ms"))
    for cell, back in found["back"].items():
        rows.append(_back(cell.what, back["most"]))
    for cell, grown in found["grown"].items():
        name = f"{cell.what} of {RATE_HZ} Hz of {SIZE // 1000} kB: the gateway's memory grew by"
        rows.append(at_most(name, grown["most"], "MiB", 16))
        sent, got, told_lost, lost = (found[metric][cell]["total"] for metric in ("sent", "got", "told_lost", "lost"))
        rows.append(figure("what it got, of all", 100 * got / sent, "%"))
        rows.append(figure("what it was told that it lost, of all", 100 * told_lost / sent, "%"))
        rows.append(at_most("meanwhile another subscriber lost", lost, "messages", 0))
    for cell, strength in found["strength"].items():
        newest = found["delay"].get(cell)
        name = f"{cell.what}: delay after {cell.seconds:g} s"
        rows.append(at_most(name, newest["most"] if newest else None, "ms", 1000))
        name = "it hears who speaks: strength of the loudest tone (0.4 was sent)"
        rows.append(at_least(name, strength["most"], "of full scale", 0.02))
        rows.append(at_least("the page says that its link is thin", found["said_thin"][cell]["total"], "yes", 1))
        name = "meanwhile, on the near side of the link: blocks lost"
        rows.append(at_most(name, found["lost"][cell]["total"], "blocks", 0))
    return rows


def _back(what: str, after_s: float | None) -> Row:
    """How long it takes until all is well again."""
    return at_most(what, after_s, "s", 2)


def _delay(ada: Person, bob: Person, seconds: float) -> Iterator[Measured]:
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ada.page.wait_for_timeout(2500)
        found += ada.delays_ms(64) + bob.delays_ms(64)
    if not found:
        raise ringcast.BrokenError("two pages heard each other, and then no block for as long as delays were measured")
    return values(Page(TWO_PAGES, seconds), "delay", found, "ms")


def _stall(ada: Person) -> Iterator[Measured]:
    ada.page.evaluate(f"() => {{ const end = Date.now() + {STALL_MS}; while (Date.now() < end); }}")
    over = time.monotonic()
    while time.monotonic() - over < 10.0:
        newest = ada.delays_ms(8)
        if newest and max(newest) < GOAL_MS and time.monotonic() - over > 0.6:
            break
        ada.page.wait_for_timeout(50)
    return values(Page(STALLED, STALL_MS / 1000), "back", [time.monotonic() - over], "s")


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


def _slow_reader(served: Served, browser: Any, socket: str, seconds: float) -> list[Measured]:
    page = browser.new_page()
    page.goto(f"{served.address}/ringcast/alive")
    with ringcast.connect(socket, start=False) as session:
        # One of the conference's own: its gateway lets nobody near others.
        tag = session.tag("conference/main/whiteboard", codec="bytes", depth=4096, capacity_bytes=4 << 20)
        page.evaluate(_READ_SLOWLY, {"name": tag.name, "pauseMs": 10_000 / RATE_HZ})
        subscriber = tag.subscribe()
        stop, received = threading.Event(), []
        publisher = tag.publisher()

        def publish() -> None:
            while not stop.wait(1 / RATE_HZ):
                publisher.send(bytes(SIZE))

        def read() -> None:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    received.append(subscriber.recv(timeout=0.2).seq)

        threads = [threading.Thread(target=work) for work in (publish, read)]
        for thread in threads:
            thread.start()
        page.wait_for_timeout(1000)
        before = served.memory_bytes()
        grown = [0.0]
        for _ in range(int(seconds * 4)):
            page.wait_for_timeout(250)
            grown.append((served.memory_bytes() - before) / 2**20)
        stop.set()
        for thread in threads:
            thread.join()
        lost_there, got_there = page.evaluate("[slow.lost, slow.received]")
        page.close()
        counted = {"sent": publisher.next_seq, "got": got_there, "told_lost": lost_there, "lost": subscriber.lost}
    cell = Page(SLOW_READER, seconds)
    found = list(values(cell, "grown", grown, "MiB"))
    for metric, number in counted.items():
        found += values(cell, metric, [number], "messages")
    return found


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
            findings.add(_recovery(bed, ada, socket))
        steps.step("a thin link")
        with _voices(socket, TONES[1:]):
            _until(lambda: min(ada.strengths(*TONES[1:])) > 0.02)
            findings.add(_thin(bed, ada, socket, 20.0 if quick else 40.0))
        ada.leave()
    return findings


_FLOWING = """() => ({
  heard: [...conference.voice.speakers.values()].reduce((sum, one) => sum + one.blocks, 0),
  seen: [...conference.tiles.values()].reduce((sum, one) => sum + one.frames, 0),
})"""


def _recovery(bed: Testbed, ada: Person, socket: str) -> Findings:
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
    findings = Findings()
    for name, what in (("heard", "others are heard"), ("seen", "others are seen"), ("sent", "this page is heard")):
        cell = Page(f"after {AWAY_S:g} s without network: {what} again", AWAY_S)
        findings.rows.append(_back(cell.what, back.get(name)))
        findings.measured += values(cell, "back", [back[name]] if name in back else [], "s")
    return findings


def _thin(bed: Testbed, ada: Person, socket: str, seconds: float) -> Findings:
    command = [sys.executable, "-m", "ringcast", "conference", "--headless", "--socket", socket, "--json"]
    bed.link("a", "b").set_rate("100kbit")
    with subprocess.Popen([*command, "--seconds", str(seconds - 5)], stdout=subprocess.PIPE, text=True) as beside:
        ada.page.wait_for_timeout(seconds * 1000)
        newest = ada.delays_ms(16)
        strengths = ada.strengths(*TONES[1:])
        said = ada.text("#thin")
        assert beside.stdout is not None
        account = json.loads(beside.stdout.read().splitlines()[-1])
    bed.link("a", "b").set_rate(None)
    cell = Page(THIN_LINK, seconds)
    found = [
        *values(cell, "delay", newest, "ms"), *values(cell, "strength", strengths, "of full scale"),
        *values(cell, "said_thin", ["Your link is thin" in said], "yes"),
        *values(cell, "lost", [account["lost"]], "blocks"),
    ]  # fmt: skip
    return Findings(judged(sampled.InPython(found)), measured=found, notes=[f"the page on 100 kbit/s said: {said}"])


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
