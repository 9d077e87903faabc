"""A page of a conference on a network of its own: the network goes away and comes back; the link is thin."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import GatewayProcess, launch
from conferences import TONES, Person, screenshot

from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


class Far:
    """A gateway on node a, a browser on node b, one wire between them."""

    def __init__(self, bed: Testbed, playwright: Any, place: Path) -> None:
        self.bed = bed
        self.wire = bed.link("a", "b")
        self.socket = str(place / "d.sock")
        here = f"{bed.node('a').address()}:8470"
        self.gateway = GatewayProcess(
            self.socket, "--listen", here, verb="conference", prefix=tuple(bed.node("a").command)
        )
        script = place / "chromium-on-b"
        script.write_text(f'#!/bin/sh\nexec {" ".join(bed.node("b").command)} chromium "$@"\n')
        script.chmod(0o755)
        self.secure = f"--unsafely-treat-insecure-origin-as-secure=http://{here}"
        self.browser = launch(playwright, self.secure, executable=str(script))

    def headless(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ringcast", "conference", "--headless", "--json", "--socket", self.socket]
        seconds = () if "--seconds" in words else ("--seconds", "600")
        return subprocess.Popen([*command, *seconds, *words], stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self.browser.close()
        self.gateway.stop()


@pytest.fixture(scope="module")
def far(playwright: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with Testbed(pair()) as bed:
        made = Far(bed, playwright, tmp_path_factory.mktemp("far"))
        yield made
        made.close()


@pytest.fixture
def voices(far: Far) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        started.append(far.headless(*words))
        assert started[-1].stdout is not None
        assert "ready" in started[-1].stdout.readline()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_network_that_was_away_comes_back_and_all_streams_go_on_without_a_click(
    far: Far, voices: Callable[..., subprocess.Popen[str]], eventually: Callable[..., None]
) -> None:
    voices("--name", "Bob", "--audio", f"tone:{TONES[1]}", "--video", "test")
    ada = Person(far.browser, far.gateway.address, "Ada", TONES[0])
    ada.publish("audio")
    eventually(lambda: ada.strengths(TONES[1])[0] > 0.02 and ada.frames().get("Bob", 0) > 3)
    far.wire.cut()
    ada.wait("document.querySelector('#connection').classList.contains('away')")
    ada.page.wait_for_timeout(5000)
    far.wire.restore()
    ada.wait("!document.querySelector('#connection').classList.contains('away')")
    seen, sent = ada.frames().get("Bob", 0), ada.value("conference.voice.sent")
    eventually(lambda: ada.strengths(TONES[1])[0] > 0.02 and ada.frames().get("Bob", 0) > seen + 3)
    eventually(lambda: ada.value("conference.voice.sent") > sent and ada.value("conference.link.session.connected"))
    ada.write("back")
    ada.wait("document.querySelector('#lines').textContent.includes('back')")
    ada.leave()


def test_a_thin_link_gets_who_speaks_and_smaller_pictures_while_others_keep_theirs(
    far: Far, voices: Callable[..., subprocess.Popen[str]], eventually: Callable[..., None], playwright: Any,
    tmp_path: Path,
) -> None:  # fmt: skip
    for name, hz in (("Bob", TONES[1]), ("Eve", TONES[2]), ("Kim", TONES[3])):
        voices("--name", name, "--audio", f"tone:{hz}", "--video", "test" if name == "Bob" else "none")
    ada = Person(far.browser, far.gateway.address, "Ada", TONES[0])
    eventually(lambda: min(ada.strengths(*TONES[1:])) > 0.02 and ada.frames().get("Bob", 0) > 3, patience_s=60)
    far.wire.set_rate("100kbit")
    try:
        eventually(lambda: "Your link is thin" in ada.text("#thin") and "you hear" in ada.text("#thin"), patience_s=60)
        eventually(lambda: max(ada.strengths(*TONES[1:])) > 0.02, patience_s=60)
        assert "80x60" in ada.text("#thin")
        # Meanwhile, whoever is on the near side of the wire has everything.
        near = json.loads(far.headless("--name", "near", "--seconds", "2").communicate()[0].splitlines()[-1])
        assert near["lost"] == near["frames_lost"] == 0
        assert len(near["received"]) == 3
        assert near["frames_received"] > 10
        screenshot(ada, "conference-thin.png", tmp_path)
    finally:
        far.wire.set_rate(None)
    eventually(lambda: "80x60" in ada.text("#people"), patience_s=60)
    ada.leave()
