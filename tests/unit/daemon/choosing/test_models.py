"""Models travel between nodes: the later one counts, and what is no model is left where it is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from ringcast.adapt import ModelError
from ringcast.adapt.judging import FOLDER
from ringcast.adapt.wanting import IN_ORDER, plain
from ringcast.control.between.choosing import MODEL, MOST_MODEL_BYTES
from ringcast.daemon.choosing.models import AHEAD_NS, Models
from ringcast.errors import QosMismatch
from ringcast.model.carrier import METRICS

ALL = [f"{metric}{ending}" for metric in METRICS.values() for ending in ("", IN_ORDER)]
LEARNED = [metric for metric in ALL if plain(metric)[0] not in ("delivered", "wire_bytes_per_update")]
"""For the others the rule is as good as the best."""


class Mesh:
    """Two nodes: what one asks of the other."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.other: Mesh | None = None
        self.handlers: dict[str, Callable[[str, bytes], Awaitable[bytes]]] = {}
        self.asked = 0

    def node(self, name: str) -> object | None:
        return self.other

    def serve(self, service: str, handler: Callable[[str, bytes], Awaitable[bytes]]) -> None:
        self.handlers[service] = handler

    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes:
        self.asked += 1
        assert self.other is not None
        return await self.other.handlers[service]("me", payload)


@pytest.fixture
def pair() -> tuple[Models, Models, Mesh]:
    one, two = Mesh(), Mesh()
    one.other, two.other = two, one
    return Models(one), Models(two), one


def model(label: str, metric: str = "relate2") -> bytes:
    return msgspec.json.encode(
        {
            "metric": metric, "family": "linear", "share": 1.0, "features": ["loss_percent"], "labels": [label],
            "weights": [[0.0]], "constants": [0.0],
        }
    )  # fmt: skip


def test_a_later_model_is_taken_from_the_other_node(pair: tuple[Models, Models, Mesh]) -> None:
    here, there, mesh = pair
    here.load(model("udp"), 10)
    there.load(model("nak"), 20)
    asyncio.run(here.follow("b", there.versions(), 30))
    found = here.of("relate2")
    assert found is not None
    assert found.labels == ["nak"]
    assert here.versions() == {"relate2": 20}
    asyncio.run(here.follow("b", there.versions(), 30))
    assert mesh.asked == 1, "what is known is not asked for again"


def test_an_older_one_and_one_from_far_in_the_future_are_not(pair: tuple[Models, Models, Mesh]) -> None:
    here, there, mesh = pair
    here.load(model("udp"), 10)
    there.load(model("nak"), 5)
    asyncio.run(here.follow("b", there.versions(), 30))
    there.load(model("nak"), AHEAD_NS + 31)
    asyncio.run(here.follow("b", there.versions(), 30))
    assert mesh.asked == 0


def test_what_is_no_model_is_refused_once(pair: tuple[Models, Models, Mesh]) -> None:
    here, _, mesh = pair
    for _ in range(2):
        asyncio.run(here.follow("b", {"relate2": 0}, 30))
    assert mesh.asked == 1
    assert here.of("nothing that is shipped") is None
    with pytest.raises(ModelError):
        here.load(b"x" * (MOST_MODEL_BYTES + 1), 1)


def test_a_client_is_told_what_is_wrong_with_its_file(pair: tuple[Models, Models, Mesh], tmp_path) -> None:
    (tmp_path / "model").write_bytes(b"{}")
    with open(tmp_path / "model", "rb") as file, pytest.raises(QosMismatch, match="metric"):
        pair[0].load_from(file.fileno())
    assert MODEL in pair[2].handlers


@pytest.mark.parametrize("metric", LEARNED)
def test_the_package_brings_models_that_are_in_force_until_another_one_is_loaded(
    pair: tuple[Models, Models, Mesh], metric: str
) -> None:
    base, in_order = plain(metric)
    shipped = pair[0].of(base, in_order)
    assert shipped is not None
    assert shipped.metric == metric
    assert pair[0].versions() == {}, "every node has them; there is nothing to take over"
    pair[0].load(model("nak", metric), 10)
    found = pair[0].of(base, in_order)
    assert found is not None
    assert found.labels == ["nak"]


@pytest.mark.parametrize("metric", ALL)
def test_a_client_cannot_load_a_model_that_is_worse_than_the_one_in_force(
    pair: tuple[Models, Models, Mesh], tmp_path: Path, metric: str
) -> None:
    worst = "multicast" if plain(metric)[0] in ("delivered", "late_or_lost_100ms") else "tcp"
    (tmp_path / "model").write_bytes(model(worst, metric))
    with (
        open(tmp_path / "model", "rb") as file,
        pytest.raises(QosMismatch, match="worse than the " + ("model in force" if metric in LEARNED else "rule")),
    ):
        pair[0].load_from(file.fileno())
    assert pair[0].versions() == {}


def test_a_model_for_what_nobody_can_ask_for_is_refused(pair: tuple[Models, Models, Mesh], tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(model("nak", "usable_frames"))
    with open(tmp_path / "model", "rb") as file, pytest.raises(QosMismatch, match="which nobody can ask for"):
        pair[0].load_from(file.fileno())
    assert pair[0].versions() == {}


def test_a_client_loads_one_that_is_as_good_for_all_nodes(pair: tuple[Models, Models, Mesh], tmp_path: Path) -> None:
    data = (FOLDER / "relate2.json").read_bytes()
    (tmp_path / "model").write_bytes(data)
    with open(tmp_path / "model", "rb") as file:
        pair[0].load_from(file.fileno())
    assert pair[0].versions().keys() == {"relate2"}


def test_a_model_that_looks_at_what_nothing_measures_is_refused(
    pair: tuple[Models, Models, Mesh], tmp_path: Path
) -> None:
    (tmp_path / "model").write_bytes(model("nak").replace(b"loss_percent", b"moonlight"))
    with open(tmp_path / "model", "rb") as file, pytest.raises(QosMismatch, match="looks at moonlight"):
        pair[0].load_from(file.fileno())


def test_none_is_taken_of_a_node_that_may_not_choose_for_others() -> None:
    one, two = Mesh(), Mesh()
    one.other, two.other = two, one
    here, there = Models(one, lambda node: node != "b"), Models(two)
    there.load(model("nak"), 20)
    asyncio.run(here.follow("b", {"relate2": 20}, 30))
    assert one.asked == 0
    asyncio.run(here.follow("c", {"relate2": 20}, 30))
    assert one.asked == 1
    assert here.versions()["relate2"] == 20
