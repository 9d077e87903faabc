"""A page in a real browser publishes, subscribes, pulls, lists and watches, as any other client does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from browsers import CONNECT, GatewayProcess
from markdown_pages import ROOT, blocks
from processes import Daemon

import ringcast
from ringcast.testing.waiting import wait_until


@pytest.fixture(scope="module")
def gateway(module_daemon: Daemon) -> Iterator[GatewayProcess]:
    made = GatewayProcess(module_daemon.socket_path, "--serve", str(ROOT / "examples" / "gateway"))
    yield made
    assert made.stop() == (0, "")


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Iterator[ringcast.Session]:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        yield made


@pytest.fixture
def page(browser: Any, gateway: GatewayProcess) -> Iterator[Any]:
    made = browser.new_page()
    made.goto(f"{gateway.address}/ringcast/alive")
    made.evaluate(CONNECT)
    yield made
    made.close()


def test_a_page_receives_what_a_program_sends(page: Any, session: ringcast.Session) -> None:
    publisher = session.tag("lab/temperature", codec="json").publisher()
    page.evaluate("async () => { window.sub = session.tag('lab/temperature').subscribe(); await sub.ready; }")
    for i in range(3):
        publisher.send({"celsius": 20 + i}, event_ns=1_700_000_000_000_000_001 + i, discardable=i == 2)
    found = page.evaluate("""async () => {
        const out = [];
        for await (const msg of sub) {
            const { seq, data, tag, lost, eventNs, discardable, publisher } = msg;
            out.push([seq, data, tag, lost, String(eventNs), discardable, publisher.program]);
            if (out.length === 3) break;
        }
        return out;
    }""")
    program = publisher.info.program
    assert found == [
        [i, {"celsius": 20 + i}, "lab/temperature", 0, str(1_700_000_000_000_000_001 + i), i == 2, program]
        for i in range(3)
    ]


def test_a_program_receives_what_a_page_sends(page: Any, session: ringcast.Session) -> None:
    numbers = page.evaluate("""async () => {
        window.pub = session.tag('page/json', {codec: 'json'}).publisher();
        return [await pub.send({a: 1}), await pub.send([2, 'ü'], {eventNs: 7n, discardable: true})];
    }""")
    assert numbers == [0, 1]
    first, second = session.tag("page/json").history().range(0, 1)
    assert (first.data, first.discardable) == ({"a": 1}, False)
    assert (second.data, second.event_ns, second.discardable) == ([2, "ü"], 7, True)


def test_a_page_pulls(page: Any, session: ringcast.Session) -> None:
    publisher = session.tag("lab/pulled", codec="json").publisher()
    for i in range(6):
        publisher.send(i)
    found = page.evaluate("""async () => {
        const history = session.tag('lab/pulled').history();
        const data = async (messages) => (await messages).map((msg) => msg.data);
        const newest = await history.latest();
        return [
            newest.data, (await history.latest(2)).data, (await history.at(1)).data, await data(history.range(2, 4)),
            await data(history.since(4)), (await history.before(newest.sentNs)).data,
            await data(history.between(0n, newest.sentNs)), await history.bounds(),
            await data(session.tag('lab/pulled').history({every: 2}).range(0, 5)),
            await history.at(99).catch((error) => error.kind),
            await session.tag('lab/none').history().latest().catch((error) => error.kind),
        ];
    }""")
    assert found == [5, 3, 1, [2, 3, 4], [4, 5], 5, [0, 1, 2, 3, 4, 5], [0, 5], [0, 2, 4], "NotYet", "Empty"]


def test_a_page_lists_and_watches(page: Any, session: ringcast.Session) -> None:
    with session.tag("watched/one").publisher():
        there = page.evaluate("""async () => {
            window.watch = session.watch('watched/**', {kinds: ['publisher']});
            await watch.ready;
            const rows = await session.tags('watched/**');
            return [rows.map((row) => [row.name, row.publishers, row.attributes.codec]),
                    (await session.nodes()).length,
                    (await session.tag('watched/one').publishers()).map((row) => row.alive),
                    (await watch.recv(30000)).publisher.tag, watch.present.length];
        }""")
        assert there == [[["watched/one", 1, "bytes"]], 1, [True], "watched/one", 1]
    left = page.evaluate("async () => [(await watch.recv(30000)).came, watch.present.length]")
    assert left == [False, 0]


def test_errors_are_those_of_python(page: Any, session: ringcast.Session) -> None:
    session.tag("lab/agreed", codec="json")
    found = page.evaluate("""async () => {
        const kind = (promise) => promise.then(() => 'nothing', (error) => error.kind);
        return [
            await kind(session.tag('lab/unknown', {create: false}).ready),
            await kind(session.tag('lab/agreed', {codec: 'msgpack'}).subscribe().ready),
            await kind(session.tag('bad name').ready),
            await kind(session.tag('lab/agreed').subscribe({every: 0}).ready),
            await kind(session.tag('lab/agreed').subscribe({size: [3, 2]}).ready),
            await kind(session.tag('lab/agreed').publisher().send(undefined)),
        ];
    }""")
    assert found == ["UnknownTag", "TagConflict", "BadTagName", "ValueError", "QosMismatch", "EncodeError"]


def test_a_page_that_is_closed_releases_everything(page: Any, session: ringcast.Session) -> None:
    page.evaluate("""async () => {
        await session.tag('left/one').subscribe().ready;
        await session.tag('left/one').publisher().ready;
    }""")

    def used() -> tuple[int, int]:
        (row,) = session.tags("left/one")
        return row.publishers, row.subscribers

    assert used() == (1, 1)
    page.close()
    wait_until(lambda: used() == (0, 0))


def test_wildcards_rates_and_starts(page: Any, session: ringcast.Session) -> None:
    one, two = (session.tag(f"wild/{name}").publisher() for name in ("one", "two"))
    for i in range(8):
        one.send(bytes([i]))
    page.evaluate("""async () => {
        window.all = session.subscribe('wild/*', {start: 'earliest', every: 2});
        await all.ready;
    }""")
    two.send(b"x")
    found = page.evaluate("""async () => {
        const out = [];
        for (let i = 0; i < 5; i++) { const msg = await all.recv(30000); out.push([msg.tag, msg.seq, ...msg.bytes]); }
        return out.sort();
    }""")
    assert found == [*(["wild/one", i, i] for i in range(0, 8, 2)), ["wild/two", 0, ord("x")]]


def test_the_page_of_the_gateway_shows_code_that_runs(page: Any) -> None:
    shown = [block.text for block in blocks((ROOT / "docs" / "gateway.md").read_text()) if block.language == "js"]
    assert shown
    for text in shown:
        # A module's import stands outside of functions; here the text runs inside of one.
        text = text.replace('import { connect } from "/ringcast/ringcast.js";', "const { connect } = window.ringcast;")
        page.evaluate(f"async () => {{ {text} }}")


def test_the_example_draws_a_chart(browser: Any, gateway: GatewayProcess, session: ringcast.Session) -> None:
    """`docs/gateway.png` is what this takes."""
    publisher = session.tag("example/temperature", codec="json").publisher()
    page = browser.new_page(viewport={"width": 720, "height": 480})
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.goto(f"{gateway.address}/?tag=example/temperature")
    page.wait_for_function("document.querySelector('[role=status]').textContent.includes('from node')")
    # The page asks for 20 a second at most, so which messages of a faster stream it gets is not known before.
    temperatures = cycle(range(20, 30))

    def shown() -> bool:
        publisher.send(next(temperatures))
        return page.evaluate("Number(document.getElementById('seq').textContent) > 20")

    wait_until(shown)
    drawn = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 700, 200).data.some((v) => v > 0)"
    page.wait_for_function(drawn)
    assert page.screenshot().startswith(b"\x89PNG")
    assert mistakes == []
    page.close()


def test_what_the_types_declare_is_there(page: Any) -> None:
    declared = (ROOT / "src/ringcast/gateway/static/ringcast.d.ts").read_text()
    for name, body in re.findall(r"^export class (\w+)[^{]*\{(.*?)^\}", declared, re.M | re.S):
        methods = set(re.findall(r"^  (\w+)(?:<[^>]*>)?\(", body, re.M)) - {"constructor"}
        found = page.evaluate("(name) => Object.getOwnPropertyNames(ringcast[name].prototype)", name)
        assert methods <= set(found), name
        hidden = {one for one in found if not one.startswith("_")} - methods - {"constructor"}
        properties = set(re.findall(r"^  readonly (\w+)", body, re.M))
        assert hidden <= properties, f"{name} has {hidden - properties} without types"


def test_a_page_of_another_origin_is_told_why(browser: Any, gateway: GatewayProcess) -> None:
    page = browser.new_page()
    page.goto(f"{gateway.address.replace('127.0.0.1', 'localhost')}/ringcast/alive")
    said = page.evaluate(
        """async (url) => {
            const ringcast = await import('/ringcast/ringcast.js');
            return ringcast.connect(url, {timeoutMs: 5000}).then(() => 'came in', (error) => error.kind);
        }""",
        f"{gateway.address.replace('http', 'ws', 1)}/ringcast/socket",
    )
    assert said == "GatewayUnavailable"
    page.close()
