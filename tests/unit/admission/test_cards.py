"""A node's network card is one resource for all that leaves it, and one for all that enters it."""

from __future__ import annotations

import math

import pytest

from ringcast.admission import Costs, Link, Node, Stream, Subscriber, System
from ringcast.admission.queueing import Flow, delay_ns
from ringcast.admission.verdict import judge

FAST = 12.5e6
"""100 Mbit/s"""


def star(
    receivers: int, card: float, size: float = 60_000, period_s: float = 0.01, reverse: bool = False
) -> System:  # fmt: skip
    """One stream from `p` to so many nodes, or from each of so many nodes one to `p`."""
    others = [f"n{i}" for i in range(receivers)]
    nodes = tuple(Node(name=name, card=card) for name in ("p", *others))
    links = tuple(Link(a="p", b=name, bandwidth=FAST) for name in others)
    pairs = [(name, "p") for name in others] if reverse else [("p", name) for name in others]
    limit = dict.fromkeys(others, 1.0)
    if reverse:
        streams = tuple(
            Stream(tag=a, node=a, period_s=period_s, bytes=size, transport="udp",
                   subscribers=(Subscriber(name=f"s {a}", node=b, deadline_s=limit[a]),))
            for a, b in pairs
        )  # fmt: skip
    else:
        wanted = tuple(Subscriber(name=f"s {b}", node=b, deadline_s=limit[b]) for _, b in pairs)
        streams = (Stream(tag="t", node="p", period_s=period_s, bytes=size, transport="udp", subscribers=wanted),)
    return System(nodes=nodes, links=links, streams=streams, costs=Costs())


@pytest.mark.parametrize("reverse", [False, True])
def test_five_copies_that_fit_five_links_do_not_fit_one_card(reverse):
    assert judge(star(5, card=0.0, reverse=reverse)).admitted
    refused = judge(star(5, card=FAST, reverse=reverse)).refused
    assert len(refused) == 5
    assert "no bound, because more is asked for than card of p can do" in refused[0].sentence()


def test_how_full_a_card_is():
    found = judge(star(5, card=FAST)).links
    assert found["p to card of p"] == pytest.approx(2.6, rel=0.02)
    assert found["card of n0 to n0"] == pytest.approx(0.52, rel=0.02)
    assert all(not name.endswith("to p") for name in found)


def test_copies_wait_for_each_other_in_the_card():
    """Of two copies, the later leaves when both have passed; without a card each has a link of its own."""
    apart, together = (judge(star(2, card=card, size=6_000)).judged[0] for card in (0.0, FAST))
    copy_s, packet_s = 6_000 / FAST, 1538 / FAST
    assert copy_s < together.bound_s - apart.bound_s < 1.12 * copy_s + 4.01 * packet_s


def test_a_message_that_passes_card_link_and_card_is_not_sent_three_times():
    """Packets go on as they come: two more links of the same rate take a packet each, and what may be begun there."""
    plain, carded = (judge(star(1, card=card)).judged[0].bound_s for card in (0.0, FAST))
    packet_s = 1538 / FAST
    assert plain < carded <= plain + 4.01 * packet_s


def test_what_comes_from_one_link_has_waited_already():
    link = Link(a="a", b="b", bandwidth=1e6, mtu=962)
    burst = Flow(0, 50_000, 1e5)
    alone = delay_ns(burst, [], link, 3)
    assert alone == pytest.approx(51e6)
    behind = burst._replace(via=0, peak=1e6, packet_bytes=1000)
    assert delay_ns(behind, [], link, 3) == pytest.approx(2e6)  # a packet, and one that has been begun
    assert delay_ns(behind, [behind], link, 3) == pytest.approx(2e6, abs=200)  # both come through that link
    both = delay_ns(behind, [behind._replace(via=2)], link, 3)
    assert 50e6 < both <= 101e6  # they come from two links at once
    assert delay_ns(behind._replace(peak=1e9), [], link, 3) == pytest.approx(alone, rel=0.01)


def test_a_card_that_is_full_has_no_bound():
    assert math.isinf(judge(star(2, card=FAST, size=60_000, period_s=0.0095)).judged[0].bound_s)
