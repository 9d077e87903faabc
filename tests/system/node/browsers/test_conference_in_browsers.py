"""People in a conference, in real browsers: they hear and see each other, draw, write and play; and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsers import GatewayProcess
from conference_model.drawing import Drawn
from conferences import TONES, Person, screenshot
from processes import Daemon

import ringcast
from ringcast.conference.media import MEDIA, tag_name
from ringcast.lab.testbed.local_mesh import local_mesh

NAMES = ("Ada", "Bob", "Eve", "Kim")


@pytest.fixture(scope="module")
def gateway(module_daemon: Daemon) -> Iterator[GatewayProcess]:
    made = GatewayProcess(module_daemon.socket_path, verb="conference")
    yield made
    assert made.stop() == (0, "")


@pytest.fixture
def join(browser: Any, gateway: GatewayProcess) -> Iterator[Callable[..., Person]]:
    people: list[Person] = []

    def joined(name: str, **how: Any) -> Person:
        people.append(Person(browser, gateway.address, name, TONES[NAMES.index(name)], **how))
        return people[-1]

    yield joined
    for person in people:
        person.leave()
        assert person.errors == []


def test_two_people_hear_and_see_each_other_draw_and_write(
    join: Callable[..., Person], eventually: Callable[..., None], tmp_path: Path
) -> None:
    ada, bob = join("Ada"), join("Bob", color_scheme="dark", viewport={"width": 390, "height": 844})
    for person in (ada, bob):
        person.publish("audio", "video")
    eventually(lambda: ada.hears(bob) and bob.hears(ada))
    eventually(lambda: ada.frames().get("Bob", 0) > 3 and bob.frames().get("Ada", 0) > 3)

    ada.draw((0.1, 0.1), (0.5, 0.5), (0.9, 0.2))
    bob.page.select_option("#tool", "box")
    bob.draw((0.2, 0.3), (0.6, 0.8))
    ada.write("Can you see it?")
    bob.write("I can.")
    for person in (ada, bob):
        person.wait("conference.view.board.things().length === 2")
        person.wait("document.querySelectorAll('#lines li').length === 2")
    assert ada.text("#lines") == bob.text("#lines")
    rows = ada.text("#people tbody")
    assert "Ada (you)" in rows
    assert "160x120" in rows
    assert "audio critical, game high, video normal" in ada.text("#force")
    screenshot(ada, "conference-two.png", tmp_path)
    screenshot(bob, "conference-phone.png", tmp_path)

    # Frames as the paper had them: raw; and as WebP.
    for kind in ("raw", "webp"):
        bob.page.evaluate(f"conference.camera.kind = '{kind}'")
        seen = ada.frames()["Bob"]
        eventually(lambda seen=seen: ada.frames()["Bob"] > seen + 3)
    assert ada.value("[...conference.tiles.values()].reduce((sum, tile) => sum + tile.bad, 0)") == 0

    ada.page.click("#undo")
    bob.wait("conference.view.board.things().length === 1")
    late = join("Eve")
    late.wait("conference.view.board.things().length === 1")
    late.wait("document.querySelectorAll('#lines li').length === 2")

    # A passive watcher looks at the board when it likes to.
    late.page.uncheck("#receive-whiteboard")
    late.wait("!conference.receives.has('whiteboard')")
    ada.draw((0.3, 0.3), (0.4, 0.4))
    bob.wait("conference.view.board.things().length === 2")
    assert late.value("conference.view.board.things().length") == 1
    late.page.click("#pull")
    late.wait("conference.view.board.things().length === 2")

    ada.page.uncheck("#receive-video")
    ada.wait("conference.tiles.size === 0")
    bob.page.uncheck("#publish-audio")
    eventually(lambda: ada.strengths(bob.hz)[0] < 0.005)


def test_four_people_hear_each_other_and_play_a_game_to_its_end(
    join: Callable[..., Person], eventually: Callable[..., None], tmp_path: Path
) -> None:
    people = [join(name) for name in NAMES]
    for person in people:
        person.publish("audio")
    eventually(lambda: all(me.hears(*(one for one in people if one is not me)) for me in people), patience_s=60)
    ada, bob, eve, _ = people

    ada.page.click("#start")
    for person in people[1:]:
        person.wait("document.querySelector('#game-word').textContent.startsWith('Ada moves the sight')")
    bob.page.click("#start")
    assert "A game is running, started by Ada" in bob.text("#word")
    # The owner follows the target; the others fire until no shot is left.
    ada.page.evaluate("""async () => {
        const { target } = await import("./together.js");
        globalThis.following = setInterval(() => {
            const { game } = conference;
            if (!game.game) return;
            const spot = target(game.game.start.seed, game.game.score, game.elapsed());
            game.aim(spot.x, spot.y);
        }, 10);
    }""")
    screenshot(ada, "conference-game.png", tmp_path)
    for shooter in (bob, eve):
        shooter.page.evaluate("setInterval(() => conference.game.fire(), 600)")
    for person in people:
        person.page.wait_for_function(
            "document.querySelector('#game-word').textContent.startsWith('The game is over')", timeout=60_000
        )
    results = {person.text("#game-word") for person in people}
    assert len(results) == 1, results
    assert ada.value("conference.game.table.state.score") > 0


def test_a_page_that_is_closed_in_mid_sentence_leaves_the_others_talking(
    join: Callable[..., Person], eventually: Callable[..., None]
) -> None:
    ada, bob, eve = join("Ada"), join("Bob"), join("Eve")
    for person in (ada, bob, eve):
        person.publish("audio")
    eventually(lambda: ada.hears(bob, eve))
    bob.page.close()
    eventually(lambda: ada.strengths(bob.hz)[0] < 0.005 and ada.hears(eve) and eve.hears(ada))
    ada.wait("!document.querySelector('#people').textContent.includes('Bob')")


@pytest.mark.parametrize(
    ("refuse", "word"),
    [("NotFoundError", "There is no microphone"), ("NotAllowedError", "not allowed to use the microphone")],
)
def test_a_device_that_cannot_be_had_is_said(join: Callable[..., Person], refuse: str, word: str) -> None:
    ada = join("Ada", refuse=refuse)
    ada.page.click("#publish-audio")
    ada.page.wait_for_selector("#word:not([hidden])")
    assert word in ada.text("#word")
    assert not ada.page.is_checked("#publish-audio")
    ada.page.click("#publish-video")
    ada.wait("document.querySelector('#word').textContent.includes('camera')")


def test_a_text_of_a_megabyte_is_refused_with_a_word(join: Callable[..., Person]) -> None:
    ada = join("Ada")
    ada.page.evaluate("document.querySelector('#line').value = 'x'.repeat(1000000)")
    ada.page.click("#chat button")
    assert "at most 2000 characters; this one has 1000000" in ada.text("#word")


def test_what_does_not_belong_on_the_tags_disturbs_nobody(
    join: Callable[..., Person], module_daemon: Daemon, eventually: Callable[..., None]
) -> None:
    ada, bob = join("Ada"), join("Bob")
    for person in (ada, bob):
        person.publish("audio", "video")
    eventually(lambda: ada.hears(bob) and ada.frames().get("Bob", 0) > 0)
    with ringcast.connect(module_daemon.socket_path, start=False) as session:
        for medium in (medium.name for medium in MEDIA):
            if medium == "video":  # the image codec refuses what is no image before it is sent
                continue
            with session.publisher(tag_name("main", medium)) as publisher:
                for rubbish in (b"", b"\xff" * 300, b'{"do": "state"}', b"\xc5\x01" + bytes(5), b"[" * 1000):
                    publisher.send(rubbish)
    bob.write("still here")
    ada.wait("document.querySelector('#lines').textContent.includes('still here')")
    seen = ada.frames()["Bob"]
    eventually(lambda: ada.hears(bob) and ada.frames()["Bob"] > seen)


def test_everything_can_be_done_from_the_keyboard(join: Callable[..., Person]) -> None:
    ada = join("Ada")
    ada.page.focus("#board")
    for key in ("ArrowLeft", "Enter", "ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
        ada.page.keyboard.press(key)
    ada.wait("conference.view.board.things().some((thing) => thing.points.length === 4)")
    ada.page.focus("#publish-audio")
    ada.page.keyboard.press("Space")
    ada.wait("conference.publishes.has('audio')")
    reached = ada.page.evaluate("""() => [...document.querySelectorAll('#inside :is(input, select, button, canvas)')]
        .filter((one) => !one.closest('figure') && one.tabIndex < 0 ).map((one) => one.id)""")
    assert reached == []
    unnamed = ada.page.evaluate("""() => [...document.querySelectorAll('#inside :is(input, select, textarea)')]
        .filter((one) => !one.labels.length && !one.ariaLabel).map((one) => one.id)""")
    assert unnamed == []


def test_who_comes_late_pulls_a_long_history(join: Callable[..., Person], module_daemon: Daemon) -> None:
    with ringcast.connect(module_daemon.socket_path, start=False) as session:
        medium = next(medium for medium in MEDIA if medium.name == "whiteboard")
        tag = session.tag(tag_name("main", medium.name), **medium.options)
        with tag.publisher() as publisher:
            for number in range(1500):
                drawn = Drawn(id=99, n=number, at=number, shape="line", points=[(number, 0), (number, 9)])
                publisher.send(msgspec.json.encode(drawn))
            ada = join("Ada")
            ada.wait("conference.view.board.things().filter((thing) => thing.id === 99).length === 1500")


def test_pages_of_two_nodes_meet_in_one_conference_and_a_proxy_makes_pictures_smaller(
    browser: Any, eventually: Callable[..., None], tmp_path: Path
) -> None:
    with local_mesh(["here", "there"], tmp_path) as nodes:
        options = ("--format", "wide", "--mixing", "publishers")
        gateways = [GatewayProcess(node.socket, *options, verb="conference") for node in nodes]
        ada, bob = (
            Person(browser, gateway.address, name, hz)
            for gateway, name, hz in zip(gateways, ("Ada", "Bob"), TONES, strict=False)
        )
        ada.publish("audio")
        bob.publish("audio", "video")
        eventually(lambda: ada.hears(bob) and bob.hears(ada))
        eventually(lambda: ada.frames().get("Bob", 0) > 3)
        assert "there" in ada.text("#people tbody")
        with ringcast.connect(nodes[0].socket, start=False) as session:

            def urgencies() -> set[str]:
                audio = tag_name("main", "audio")
                return {row.priority for row in session.channels() if row.tag == audio and row.direction == "in"}

            eventually(lambda: urgencies() == {"critical"})
            ada.page.click("[aria-label='game counts more']")
            eventually(lambda: urgencies() == {"high"})
        ada.page.evaluate("document.querySelector('details').open = true")
        ada.page.select_option("#size", "small")
        ada.wait("document.querySelector('#people tbody').textContent.includes('80x60')")
        ada.wait("document.querySelector('#proxy').textContent.includes('from there (80x60)')")
        assert "As you chose" in ada.text("#thin")
        for person in (ada, bob):
            person.leave()
            assert person.errors == []
        for gateway in gateways:
            assert gateway.stop() == (0, "")
