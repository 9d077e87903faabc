"""People at the conference's page, each in a browser context of its own, with a tone for a voice.

Drives a real Chromium by Playwright, which is no dependency of Ringcast: `missing` says what is not there.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ringcast.errors import BrokenError

TONES = (500, 875, 1250, 1625)
PATIENCE_MS = 30_000.0
FLAGS = (
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
)  # fmt: skip
# The fake microphone of Chromium beeps the same for all pages of a browser: an oscillator tells people apart.
_TONE = """
(hz) => {
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    if (!wanted.audio) return real(wanted);
    const context = new AudioContext();
    const [tone, gain] = [context.createOscillator(), context.createGain()];
    const out = context.createMediaStreamDestination();
    globalThis.speak = (loud) => { gain.gain.value = loud ? 0.4 : 0; };
    tone.frequency.value = hz;
    speak(true);
    tone.connect(gain).connect(out);
    tone.start();
    return out.stream;
  };
}
"""
_REFUSE = (
    "(name) => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('refused', name); }; }"
)
_STRENGTHS = """
async (tones) => {
  const mixed = await conference.voice.mixed();
  return tones.map((hz) => {
    let [a, b] = [0, 0];
    for (let i = 0; i < mixed.length; i++) {
      const angle = 2 * Math.PI * hz * i / conference.voice.form.rateHz;
      a += mixed[i] * Math.cos(angle);
      b += mixed[i] * Math.sin(angle);
    }
    return 2 * Math.hypot(a, b) / mixed.length;
  });
}
"""
_HOW_FAR = """
() => [
  document.querySelector("#connection").textContent,
  document.querySelector("#word").textContent || "the page says nothing",
  `publishes ${[...globalThis.conference?.publishes ?? []]}`,
  `receives ${[...globalThis.conference?.receives ?? []]}`,
].join("; ")
"""


def missing() -> str | None:
    """Why no page can be driven here, in one sentence; None when it can."""
    if shutil.which("chromium") is None:
        return "Chromium is not installed (apt-get install chromium)"
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("aiohttp") is None:
        return "aiohttp is not installed (pip install 'ringcast[gateway]')"
    return None


@contextmanager
def chromium(*flags: str, executable: str | None = None) -> Iterator[Any]:
    """A browser without a window. `executable` may be a script that runs it elsewhere."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = executable or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


class Served:
    """`ringcast conference` as people start it."""

    def __init__(self, socket: str, listen: str = "127.0.0.1:0", prefix: Sequence[str] = ()) -> None:
        command = [*prefix, sys.executable, "-m", "ringcast", "conference", "--socket", socket, "--listen", listen]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"https?://[^/\s]+", self.process.stdout.readline())
        if found is None:
            self.stop()
            raise BrokenError("the conference's gateway did not start; what it said stands above")
        self.address = found.group()

    def memory_bytes(self) -> int:
        """What the gateway's process occupies."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found.group(1)) * 1024 if found else 0

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Person:
    """Opens the page and joins. `refuse` is the error that the browser's devices raise instead of working."""

    def __init__(
        self, browser: Any, address: str, name: str, hz: int = 500, *, refuse: str = "", **context: Any
    ) -> None:
        self.name = name
        self.hz = hz
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.add_init_script(f"({_REFUSE})('{refuse}')" if refuse else f"({_TONE})({hz})")
        self.page.goto(f"{address}/")
        self.page.fill("#name", name)
        self.page.click("#join button")
        self._wait_until_inside()
        # What cleans up voices would clean away tones.
        self.page.evaluate("document.querySelector('#processing').checked = false")

    def _wait_until_inside(self) -> None:
        """As the page says whether it joined. An error tells how far it came and what it says itself."""
        from playwright.sync_api import TimeoutError as NotInTimeError

        try:
            self.page.wait_for_selector("#inside:not([hidden]), #word:not([hidden])")
        except NotInTimeError:
            pass
        if not self.page.is_visible("#inside"):
            raise BrokenError(
                f"{self.name} did not get into the conference: {self.page.evaluate(_HOW_FAR)} {self.errors}"
            )

    def publish(self, *media: str) -> None:
        for medium in media:
            self.page.check(f"#publish-{medium}")
            self.page.wait_for_function("(medium) => conference.publishes.has(medium)", arg=medium)

    def strengths(self, *tones: int) -> list[float]:
        """How loud each tone is in what this person hears; a full-scale tone is 1."""
        found: list[float] = self.page.evaluate(_STRENGTHS, list(tones))
        return found

    def hears(self, *others: Person) -> bool:
        loud = self.strengths(*(other.hz for other in others))
        silent = self.strengths(self.hz, self.hz + 187)
        return min(loud) > 0.02 and min(loud) > 4 * max(silent)

    def delays_ms(self, newest: int = 160) -> list[float]:
        """From capture worklet to playback worklet, of the newest blocks of each speaker."""
        found: list[float] = self.page.evaluate(
            "(newest) => [...conference.voice.speakers.values()].flatMap((one) => one.delays.slice(-newest))", newest
        )
        return found

    def frames(self) -> dict[str, int]:
        found: dict[str, int] = self.page.evaluate(
            "Object.fromEntries([...conference.tiles.values()].map((tile) => [tile.caption.textContent, tile.frames]))"
        )
        return found

    def value(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def text(self, selector: str) -> str:
        found: str = self.page.inner_text(selector)
        return found

    def draw(self, *points: tuple[float, float]) -> None:
        """A stroke, by mouse; points are shares of the board's width and height."""
        self.page.locator("#board").scroll_into_view_if_needed()
        box = self.page.locator("#board").bounding_box()
        at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
        self.page.mouse.move(*at[0])
        self.page.mouse.down()
        for point in at[1:]:
            self.page.mouse.move(*point)
        self.page.mouse.up()

    def write(self, text: str) -> None:
        self.page.fill("#line", text)
        self.page.press("#line", "Enter")

    def wait(self, condition: str) -> None:
        self.page.wait_for_function(condition)

    def leave(self) -> None:
        self.context.close()
