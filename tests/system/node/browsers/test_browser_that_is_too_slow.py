"""A page that takes a message now and then, beside one that takes them all: the gateway keeps little for it, counts
what it did not get, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import CONNECT, GatewayProcess
from processes import Daemon

import ringcast
from ringcast.testing.waiting import PATIENCE_S, wait_until

MESSAGES, PAYLOAD = 3000, bytes(20_000)
MOST_GROWTH_BYTES = 24 * 2**20  # 60 MB pass; the backlog may hold 2 MB a page


@pytest.fixture(scope="module")
def gateway(module_daemon: Daemon) -> Iterator[GatewayProcess]:
    made = GatewayProcess(module_daemon.socket_path)
    yield made
    assert made.stop() == (0, "")


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Iterator[ringcast.Session]:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        yield made


@pytest.fixture
def open_page(browser: Any, gateway: GatewayProcess) -> Iterator[Any]:
    made: list[Any] = []

    def make() -> Any:
        page = browser.new_page()
        made.append(page)
        page.goto(f"{gateway.address}/ringcast/alive")
        page.evaluate(CONNECT)
        return page

    yield make
    for page in made:
        page.close()


def memory_bytes(pid: int) -> int:
    """Its own: the publisher's ring is mapped too."""
    resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * 4096


def test_what_it_got_and_what_it_lost_is_all_there_was(
    open_page: Any, session: ringcast.Session, gateway: GatewayProcess
) -> None:
    tag = session.tag("fast/one", max_wait_s=PATIENCE_S, capacity_bytes=2**23)
    publisher = tag.publisher()
    slow, quick = open_page(), open_page()
    slow.evaluate("""async () => {
        window.sub = session.tag('fast/one').subscribe();
        await sub.ready;
        window.seen = [];
        window.most = 1;
        sub.onPaced((every) => { most = Math.max(most, every); });
        sub.onMessage(async (msg) => {
            seen.push([msg.seq, msg.lost]);
            await new Promise((resolve) => setTimeout(resolve, 50));
        });
    }""")
    quick.evaluate("""async () => {
        window.sub = session.tag('fast/one').subscribe({reliable: true});
        await sub.ready;
        window.seen = [];
        sub.onMessage((msg) => { seen.push(msg.seq); });
    }""")
    before = memory_bytes(gateway.process.pid)
    grown = 0
    for i in range(MESSAGES):
        publisher.send(PAYLOAD)
        if i % 100 == 0:
            grown = max(grown, memory_bytes(gateway.process.pid) - before)
    wait_until(lambda: quick.evaluate("seen.length") == MESSAGES)
    assert quick.evaluate("[sub.lost, seen.every((seq, i) => seq === i)]") == [0, True]
    assert grown < MOST_GROWTH_BYTES

    # The slow one is told of all that it did not get: by the next message of the publisher, or by the gateway's total.
    wait_until(lambda: slow.evaluate("seen.length + sub.lost") == MESSAGES)
    seen = slow.evaluate("seen")
    assert 0 < len(seen) < MESSAGES / 2
    assert slow.evaluate("most") > 1
    following = -1
    for seq, lost in seen:
        assert seq == following + 1 + lost
        following = seq


def test_discardable_messages_go_first(open_page: Any, session: ringcast.Session) -> None:
    """Every second message is discardable. A page that stands still for a while loses those above all."""
    publisher = session.tag("fast/silence", max_wait_s=PATIENCE_S).publisher()
    page = open_page()
    page.evaluate("""async () => {
        window.sub = session.tag('fast/silence').subscribe();
        await sub.ready;
        window.seen = [];
        window.go = new Promise((resolve) => { window.start = resolve; });
        sub.onMessage(async (msg) => { await go; seen.push(msg.seq); });
    }""")
    # Fewer than what a window and a queue hold of the important ones, more with the others.
    for i in range(40):
        publisher.send(b"x", discardable=i % 2 == 1)
    wait_until(lambda: page.evaluate("sub.lost") > 0)
    page.evaluate("start()")
    wait_until(lambda: page.evaluate("seen.length + sub.lost") == 40)
    seen = page.evaluate("seen")
    assert [seq for seq in range(0, 40, 2) if seq not in seen] == []


def test_a_page_that_does_nothing_for_seconds_goes_on(open_page: Any, session: ringcast.Session) -> None:
    publisher = session.tag("fast/stuck", codec="json", max_wait_s=PATIENCE_S).publisher()
    page, other = open_page(), open_page()
    for one in (page, other):
        one.evaluate("""async () => {
            window.sub = session.tag('fast/stuck').subscribe();
            await sub.ready;
            window.last = -1;
            window.count = 0;
            sub.onMessage((msg) => { last = msg.data; count += 1; });
        }""")
    page.evaluate(
        "() => { setTimeout(() => { const end = performance.now() + 3000; while (performance.now() < end); }, 0); }"
    )
    sent = 0
    while other.evaluate("last") < 200:
        publisher.send(sent)
        sent += 1
        other.wait_for_timeout(5)
    publisher.send(sent)
    wait_until(lambda: page.evaluate("last") == sent)
    wait_until(lambda: page.evaluate("count + sub.lost") == sent + 1)
    assert page.evaluate("session.connected")
