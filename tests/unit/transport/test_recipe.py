"""A transport's text: what it is put together from, what it promises, and what is said when it cannot be."""

from __future__ import annotations

import pytest

from ringcast.errors import QosMismatch
from ringcast.transport import find
from ringcast.transport.interface import GroupTransport
from ringcast.transport.recipe import read, unordered
from ringcast.transport.registry import reliable_names


@pytest.mark.parametrize(
    ("text", "stages", "multicast", "reliable"),
    [
        ("multicast", ("ordering",), True, False),
        ("nak", ("ordering", "nak"), False, True),
        ("multicast+nak", ("ordering", "nak"), True, True),
        ("lateral:r=4,c=3", ("ordering", "lateral"), False, False),
        ("lateral+nak:r=4,c=3,stagger=2", ("ordering", "lateral", "nak"), False, True),
        ("parity:r=8,c=2", ("ordering", "parity"), False, False),
        ("ack", ("ordering", "ack"), False, True),
        ("lossy+multicast+nak:loss=3%,seed=7", ("ordering", "nak"), True, True),
    ],
)
def test_a_text_is_read(text: str, stages: tuple[str, ...], multicast: bool, reliable: bool) -> None:
    recipe = read(text)
    assert (recipe.shape.stages, recipe.shape.multicast) == (stages, multicast)
    assert (recipe.promises.reliable, recipe.promises.ordered) == (reliable, True)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("lateral:r=4,c=3", "lateral+unordered:r=4,c=3"),
        ("multicast+parity", "multicast+parity+unordered"),
        ("multicast", "multicast+unordered"),
        ("lossy+parity:loss=3%", "lossy+parity+unordered:loss=3%"),
        ("lateral+unordered", "lateral+unordered"),
        ("nak", "nak"),
        ("lateral+nak:r=4", "lateral+nak:r=4"),
        ("ack", "ack"),
        ("udp", "udp"),
        ("tcp", "tcp"),
    ],
)
def test_a_transport_goes_without_an_order_where_it_can(text: str, without: str) -> None:
    assert unordered(text) == without
    assert find(without).promises.ordered == (without == text and "unordered" not in text)
    assert "ordering" not in read("lateral+unordered").shape.stages


def test_parameters_are_no_part_of_the_shape() -> None:
    assert read("lateral:r=4").shape == read("lateral:r=8,c=2,stagger=3").shape
    assert read("lateral:r=4").tuning != read("lateral:r=8").tuning
    assert read("nak").shape != read("multicast+nak").shape


def test_each_end_loses_by_a_seed_of_its_own() -> None:
    recipe = read("lossy+nak:loss=10%,burst=5,seed=7")
    rate, enter, leave, duplicate, overtake, seed = recipe.native_loss(3)
    assert (duplicate, overtake) == (0, 0)
    assert (rate, leave, seed) == (0.0, 0.2, 10)
    assert enter / (enter + leave) == pytest.approx(0.1)
    assert read("nak").native_loss(3) == (0.0, 0.0, 1.0, 0.0, 0.0, 0)
    assert read("lossy+nak:duplicate=5%,overtake=2%").native_loss(0) == (0.0, 0.0, 1.0, 0.05, 0.02, 1)


@pytest.mark.parametrize(
    "text",
    [
        "nak:speed=3",
        "nak+pigeon",
        "lateral:r=0",
        "multicast+ack",
        "nak+unordered",
        "ack+unordered",
        "ordering+lateral+unordered",
        "nak:",
        "nak:tries=x",
    ],
)
def test_what_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(QosMismatch):
        find(text)


def test_the_registry_hands_over_the_parameters() -> None:
    found = find("lossy+parity:r=2,c=1,loss=1%")
    assert isinstance(found, GroupTransport)
    assert found.name == "lossy+parity:r=2,c=1,loss=1%"
    assert found is find("lossy+parity:r=2,c=1,loss=1%")
    assert not isinstance(find("udp"), GroupTransport)
    with pytest.raises(QosMismatch, match="takes no parameters"):
        find("tcp:r=3")


def test_those_that_promise_everything() -> None:
    names = reliable_names()
    assert {"tcp", "nak", "ack", "lateral+nak", "parity+nak", "multicast+nak"} <= set(names)
    assert not {"udp", "lateral", "parity", "multicast"} & set(names)
    assert all(find(name).promises.reliable for name in names)
