"""A real Chromium for tests, one per module, and a gateway beside a daemon for it.

A test that needs a browser takes `open_page`; it is skipped where there is none, and says so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import Daemon

NO_BROWSER = "no Chromium: apt-get install chromium (Debian), dnf install chromium, pacman -S chromium"
FLAGS = (
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
)  # fmt: skip

CONNECT = """async () => {
    window.ringcast = await import('/ringcast/ringcast.js');
    window.session = await ringcast.connect();
}"""
"""What most pages do first."""


def launch(playwright: Any, *flags: str, executable: str | None = None) -> Any:
    """Chromium without a window. `executable` may be a script that runs it elsewhere, as in a network namespace."""
    return playwright.chromium.launch(
        executable_path=executable or shutil.which("chromium"), headless=True, args=[*FLAGS, *flags]
    )


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    """The driver, for a module that starts browsers of its own."""
    if shutil.which("chromium") is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    """One Chromium for all tests of a module."""
    found = launch(playwright)
    yield found
    found.close()


class GatewayProcess:
    """`ringcast gateway` as people start it."""

    def __init__(self, socket_path: str, *options: str, verb: str = "gateway", prefix: tuple[str, ...] = ()) -> None:
        command = [*prefix, sys.executable, "-m", "ringcast", verb, "--socket", socket_path]
        if "--listen" not in options:
            command += ["--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"https?://[^/\s]+", said)
        if found is None:
            self.process.kill()
            raise AssertionError(f"the gateway did not start: {said!r} {self.process.communicate()[1]}")
        self.address = found.group()

    def stop(self) -> tuple[int, str]:
        """Its exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.terminate()
        errors = self.process.communicate(timeout=30)[1]
        return self.process.returncode, errors

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def module_daemon() -> Iterator[Daemon]:
    """One daemon for all tests of a module."""
    with tempfile.TemporaryDirectory(prefix="ringcast") as folder:
        daemon = Daemon(Path(folder) / "d.sock").start()
        yield daemon
        daemon.stop()


@pytest.fixture
def start_gateway() -> Iterator[Callable[..., GatewayProcess]]:
    made: list[GatewayProcess] = []

    def start(socket_path: str, *options: str, **how: Any) -> GatewayProcess:
        made.append(GatewayProcess(socket_path, *options, **how))
        return made[-1]

    yield start
    for gateway in made:
        gateway.stop()
