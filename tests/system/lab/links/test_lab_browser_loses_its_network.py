"""A page whose network is away for a while, or whose gateway is: all of its streams go on by themselves, and count."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import CONNECT, GatewayProcess, launch
from processes import Daemon

import ringcast
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair
from ringcast.testing.waiting import wait_until

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

OPEN = """async () => {
    window.seen = {};
    window.changes = [];
    session.onConnectionChange((change) => changes.push(change));
    for (const [name, options] of [['stream', {}], ['sure', {reliable: true}]]) {
        const sub = session.tag(`net/${name}`, {codec: 'json'}).subscribe(options);
        await sub.ready;
        seen[name] = {sub, data: [], lost: 0};
        sub.onMessage((msg) => { seen[name].data.push(msg.data); seen[name].lost += msg.lost; });
    }
    window.pub = session.tag('net/page', {codec: 'json'}).publisher();
    await pub.ready;
}"""


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    with Testbed(pair()) as made:
        yield made


@pytest.fixture(scope="module")
def far_browser(playwright: Any, bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser on the other machine of the network."""
    script: Path = tmp_path_factory.mktemp("browser") / "chromium"
    script.write_text(f'#!/bin/sh\nexec {" ".join(bed.node("b").command)} chromium "$@"\n')
    os.chmod(script, 0o755)
    found = launch(playwright, executable=str(script))
    yield found
    found.close()


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Iterator[ringcast.Session]:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        yield made


class Far:
    """A page behind the link, and publishers on this side that know what they sent."""

    def __init__(self, browser: Any, bed: Testbed, session: ringcast.Session, start: Any, socket_path: str) -> None:
        self.listen = f"{bed.node('a').address()}:7480"
        self._start = lambda: start(socket_path, "--listen", self.listen, "--open", prefix=tuple(bed.node("a").command))
        self.gateway: GatewayProcess = self._start()
        self.publishers = {
            name: session.tag(f"net/{name}", codec="json", max_wait_s=0.01).publisher(on_slow="skip")
            for name in ("stream", "sure")
        }
        self.sent = dict.fromkeys(self.publishers, 0)
        self.page = browser.new_page()
        self.page.goto(f"{self.gateway.address}/ringcast/alive")
        self.page.evaluate(CONNECT)
        self.page.evaluate(OPEN)

    def restart(self) -> None:
        self.gateway = self._start()

    def send(self, name: str) -> None:
        self.publishers[name].send(self.sent[name])
        self.sent[name] += 1

    def flows(self) -> bool:
        """Whether something that is sent now on either stream arrives."""
        before = {name: self.sent[name] for name in self.publishers}
        for name in self.publishers:
            self.send(name)
        self.page.wait_for_timeout(50)
        last = self.page.evaluate("Object.fromEntries(Object.entries(seen).map(([k, v]) => [k, v.data.at(-1) ?? -1]))")
        return all(last[name] >= before[name] for name in before)

    def close(self) -> None:
        self.page.close()
        for publisher in self.publishers.values():
            publisher.close()


@pytest.fixture
def far(
    far_browser: Any, bed: Testbed, session: ringcast.Session, start_gateway: Any, module_daemon: Daemon
) -> Iterator[Far]:
    made = Far(far_browser, bed, session, start_gateway, module_daemon.socket_path)
    yield made
    made.close()


def test_all_streams_recover_without_a_click(far: Far, bed: Testbed, session: ringcast.Session) -> None:
    wait_until(far.flows)
    link = bed.link("a", "b")
    link.cut()
    try:
        far.page.evaluate("() => { window.waiting = [pub.send('sent while away')]; }")
        wait_until(lambda: not far.page.evaluate("session.connected"))
        for _ in range(100):
            far.send("stream")
        assert far.page.evaluate("pub.sendNowait('dropped')") is False
    finally:
        link.restore()
    restored = time.monotonic()
    wait_until(far.flows)
    print(f"all streams flow {time.monotonic() - restored:.2f} s after the network's return")

    page = session.tag("net/page").history()
    far.page.evaluate("async () => { await Promise.all(waiting); }")
    assert [message.data for message in page.range(0, 10)] == ["sent while away"]
    assert far.page.evaluate("changes") == ["connected", "lost", "back"]
    # The page's place was kept: the reliable stream misses nothing, the other counts what it missed.
    wait_until(lambda: far.page.evaluate("seen.sure.data.length") == far.sent["sure"])
    assert far.page.evaluate("[seen.sure.lost, seen.sure.sub.lost]") == [0, 0]
    wait_until(lambda: far.page.evaluate("seen.stream.data.length + seen.stream.sub.lost") == far.sent["stream"])
    data = far.page.evaluate("seen.stream.data")
    assert data == sorted(set(data))
    assert far.page.evaluate("seen.stream.sub.lost") > 0


def test_a_gateway_that_was_killed_and_comes_back(far: Far, session: ringcast.Session) -> None:
    wait_until(far.flows)
    far.page.evaluate(
        "async () => { window.watch = session.watch('net/**', {kinds: ['publisher']}); await watch.ready; }"
    )
    far.gateway.kill()
    wait_until(lambda: not far.page.evaluate("session.connected"))
    for _ in range(10):
        far.send("stream")
    far.restart()
    wait_until(far.flows)
    assert far.page.evaluate("changes") == ["connected", "lost", "back"]
    assert isinstance(far.page.evaluate("pub.send('again')"), int)
    wait_until(lambda: far.page.evaluate("seen.stream.data.length + seen.stream.sub.lost") == far.sent["stream"])
    # The page's old publisher went with the old gateway, and its new one came.
    tags = "() => watch.present.map((one) => one.publisher.tag).sort()"
    wait_until(lambda: far.page.evaluate(tags) == ["net/page", "net/stream", "net/sure"])
