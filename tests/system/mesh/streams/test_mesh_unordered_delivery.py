"""Subscribers that need no order: what comes after a gap does not wait for it, every message comes once, and what is
given up is counted."""

from __future__ import annotations

import pytest

COUNT = 400


def publish(pub, count=COUNT, length=8):
    for number in range(count):
        pub.send(number.to_bytes(4, "big") + bytes(length))


def receive(sub, more, count=COUNT):
    """All that comes of so many; those sent by `more` push the last ones out."""
    found, lost = [], 0
    while not found or max(message.seq for message in found) < count + 20:
        try:
            message = sub.recv(timeout=1)
        except TimeoutError:
            more()
            continue
        found.append(message)
        lost += message.lost
    return found, lost


@pytest.mark.parametrize("length", [8, 5_000])
def test_what_is_recovered_comes_late_and_holds_nobody_back(make_mesh, eventually, length):
    a, b = make_mesh(2)
    pub = a.session.tag("x", capacity_bytes=1 << 23, depth=2048).publisher()
    eventually(lambda: b.knows("x"))
    text = "lossy+parity:r=8,c=4,flush=1s,loss=5%,seed=5"
    sub = b.session.tag("x").subscribe(ordered=False, transport=text)
    assert [row.transport for row in b.incoming(tag="x")] == ["lossy+parity+unordered:r=8,c=4,flush=1s,loss=5%,seed=5"]
    publish(pub, length=length)
    found, lost = receive(sub, lambda: publish(pub, 30, length))
    numbers = [message.seq for message in found]
    assert len(set(numbers)) == len(numbers)
    assert numbers != sorted(numbers), "something must have overtaken what was lost and recovered"
    assert all(message.data[:4] == n.to_bytes(4, "big") for message in found if (n := message.seq) < COUNT)
    row = b.incoming(tag="x")[0]
    assert row.counters["recovered"] > 0
    # Each message came or was given up; a few of the newest may be under way yet.
    assert COUNT <= len(numbers) + lost <= max(numbers) + 1


def test_what_is_given_up_is_lost_without_an_order_too(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.tag("x", depth=2048).publisher()
    eventually(lambda: b.knows("x"))
    sub = b.session.tag("x").subscribe(ordered=False, transport="lossy+multicast:loss=10%,seed=5")
    publish(pub)
    found, lost = receive(sub, lambda: publish(pub, 30))
    assert 10 < lost < 100
    missing = set(range(max(message.seq for message in found))) - {message.seq for message in found}
    eventually(lambda: b.incoming(tag="x")[0].lost >= len(missing))
    assert sub.stats().lost == lost


def test_those_who_want_an_order_on_the_same_node_have_a_mirror_of_their_own(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.tag("x", depth=2048).publisher()
    eventually(lambda: b.knows("x"))
    text = "lossy+parity:r=8,c=4,flush=1s,loss=5%,seed=5"
    ordered = b.session.tag("x").subscribe(transport=text)
    loose = b.session.tag("x").subscribe(ordered=False, transport=text)
    assert len(b.incoming(tag="x")) == 2
    publish(pub)
    found, _ = receive(loose, lambda: publish(pub, 30))
    in_order = []
    while not in_order or in_order[-1] < COUNT - 1:
        in_order.append(ordered.recv(timeout=30).seq)
    assert in_order == sorted(in_order)
    assert len({message.seq for message in found}) == len(found)


def test_on_the_publishers_node_and_by_nak_it_changes_nothing(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.tag("x").publisher()
    eventually(lambda: b.knows("x"))
    here = a.session.tag("x").subscribe(ordered=False, every=2)
    there = b.session.tag("x").subscribe(ordered=False)
    assert [row.transport for row in b.incoming(tag="x")] == ["nak"]
    publish(pub, 20)
    assert [here.recv(timeout=30).seq for _ in range(10)] == list(range(0, 20, 2))
    assert [there.recv(timeout=30).seq for _ in range(20)] == list(range(20))


def test_reliable_without_an_order_is_refused(make_mesh):
    (a,) = make_mesh(1)
    with pytest.raises(ValueError, match="ordered=False"):
        a.session.tag("x").subscribe(reliable=True, ordered=False)
