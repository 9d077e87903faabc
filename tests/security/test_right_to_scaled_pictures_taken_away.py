"""A program without the right any more holds the ring of a scaled stream, wherever it is scaled: that ring carries
nothing new, and those who keep their rights go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from outsiders import Outsider, RuledNode, needs_root

pytestmark = needs_root

ALL = '[[rules]]\nuser = "nobody"\nmay = ["subscribe", "pull"]\ntags = ["lab/**"]\n'
SIZE = (4, 4)


@pytest.fixture
def node() -> Iterator[RuledNode]:
    made = RuledNode(ALL, "--name", "near")
    yield made
    made.close()


def picture(number: int) -> Any:
    return np.full((8, 8), number, np.uint8)


def ring(node: RuledNode, at: str) -> int | None:
    """That readers of the scaled stream are shown now, by its incarnation."""
    looker = Outsider(node.socket_path)
    looker.hello()
    looker.subscribe("lab/a", size=SIZE, at=at)
    found = [up.ring for up, _ in looker.rings if up.size == SIZE]
    looker.close()
    return found[0] if found else None


@pytest.mark.parametrize("at", ["publisher", "node:near"])
@pytest.mark.parametrize("whole", [False, True], ids=["scaled", "scaled-and-whole"])
def test_the_scaled_ring_that_a_reader_kept_carries_nothing_new(
    node: RuledNode, at: str, whole: bool, eventually: Callable[..., None]
) -> None:
    session = node.session()
    tag: Any = session.tag("lab/a", codec="image", depth=256)
    publisher, honest = tag.publisher(), tag.subscribe(reliable=True)
    scaled = tag.subscribe(size=SIZE, at=at, reliable=True)
    outsider = node.outsider()
    outsider.hello()
    outsider.subscribe("lab/a", size=SIZE, at=at)
    assert [up.size for up, _ in outsider.rings] == [SIZE]
    if whole:
        outsider.subscribe("lab/a")
    kept = [outsider.reader(number) for number in range(len(outsider.rings))]
    assert len(kept) == 1 + whole
    publisher.send(picture(1))
    for reading in (honest, scaled):
        assert reading.recv(30).data[0, 0] == 1
    for reader in kept:
        reader.recv(30)
    first = ring(node, at)

    node.rule("")
    eventually(lambda: ring(node, at) not in (None, first))
    for number in range(50):
        publisher.send(picture(100 + number))
    for reading in (honest, scaled):
        assert [int(reading.recv(30).data[0, 0]) for _ in range(50)] == [100 + number for number in range(50)]
        assert reading.stats().lost == 0
    for reader in kept:
        with pytest.raises(TimeoutError):
            reader.recv(0)
    outsider.close()


def test_one_who_keeps_the_right_to_the_scaled_stream_misses_nothing(
    node: RuledNode, eventually: Callable[..., None]
) -> None:
    """Another user's program of the same rules, while rules change that are not about it."""
    tag: Any = node.session().tag("lab/a", codec="image", depth=256)
    publisher = tag.publisher()
    reading: Any = (
        node.foreign_session().tag("lab/a", codec="image").subscribe(size=SIZE, at="publisher", reliable=True)
    )
    first = ring(node, "publisher")
    node.rule(ALL.replace("lab/**", "lab/*"))
    session = node.session()
    eventually(lambda: any("lab/*" in row.value for row in session.settings()))
    for number in range(20):
        publisher.send(picture(number))
    assert [int(reading.recv(30).data[0, 0]) for _ in range(20)] == list(range(20))
    assert ring(node, "publisher") == first
