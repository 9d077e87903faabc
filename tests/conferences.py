"""People at the conference's page, each in a browser context of its own, with a tone for a voice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringcast.testing.waiting import PATIENCE_S

# The fake microphone of Chromium beeps the same for all pages of a browser: an oscillator tells people apart.
TONE = """
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
REFUSE = "(name) => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('refused', name); }; }"
STRENGTHS = """
async (tones) => {
  const mixed = await conference.voice.mixed();
  return tones.map((hz) => {
    let [a, b] = [0, 0];
    for (let i = 0; i < mixed.length; i++) {
      const angle = 2 * Math.PI * hz * i / 8000;
      a += mixed[i] * Math.cos(angle);
      b += mixed[i] * Math.sin(angle);
    }
    return 2 * Math.hypot(a, b) / mixed.length;
  });
}
"""
TONES = (500, 875, 1250, 1625)
PATIENCE_MS = PATIENCE_S * 1000


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
        self.page.add_init_script(f"({REFUSE})('{refuse}')" if refuse else f"({TONE})({hz})")
        self.page.goto(f"{address}/")
        self.page.fill("#name", name)
        self.page.click("#join button")
        self.page.wait_for_selector("#inside:not([hidden])")
        # What cleans up voices would clean away tones.
        self.page.evaluate("document.querySelector('#processing').checked = false")

    def publish(self, *media: str) -> None:
        for medium in media:
            self.page.check(f"#publish-{medium}")
            self.page.wait_for_function("(medium) => conference.publishes.has(medium)", arg=medium)

    def strengths(self, *tones: int) -> list[float]:
        """How loud each tone is in what this person hears; a full-scale tone is 1."""
        found: list[float] = self.page.evaluate(STRENGTHS, list(tones))
        return found

    def hears(self, *others: Person) -> bool:
        loud = self.strengths(*(other.hz for other in others))
        silent = self.strengths(self.hz, self.hz + 187)
        return min(loud) > 0.02 and min(loud) > 4 * max(silent)

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


def screenshot(person: Person, name: str, place: Path) -> None:
    """For the documentation, where RINGCAST_SCREENSHOTS names its folder; else beside the test's other files."""
    folder = Path(os.environ.get("RINGCAST_SCREENSHOTS", place))
    person.page.screenshot(path=str(folder / name), full_page=True)


Join = Callable[..., Person]
