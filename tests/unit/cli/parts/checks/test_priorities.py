"""What `ringcast doctor` says of priorities: what is not in force, and what would help with that."""

import pytest

from ringcast.cli.parts.checks.node import priorities
from ringcast.cli.parts.checks.scheduling import bandwidth
from ringcast.control.status import ChannelStatus, InForce


def row(text, direction="out", **has):
    return ChannelStatus(
        direction=direction, node="b", incarnation=5, tag="t", transport="udp", every=1, size=None, rate_hz=0.0,
        reliable=False, priority=text, in_force=InForce(**has), messages=0, bytes=0, lost=0, counters={},
    )  # fmt: skip


def test_nothing_is_said_while_nobody_asks():
    assert priorities([]) == []


def test_all_in_force():
    (found,) = priorities([row("high", dscp="AF42"), row("fifo:3", sched="fifo:3", locked_bytes=1)])
    assert (found.state, found.value) == ("ok", "2 channel(s) with one, all in force")


@pytest.mark.parametrize(
    ("channel", "names", "others"),
    [
        (row("fifo:3", sched="other", locked_bytes=1, refused="no"), ["CAP_SYS_NICE"], ["CAP_NET_ADMIN", "MEMLOCK"]),
        (row("high bandwidth:5mbit", refused="no"), ["CAP_NET_ADMIN", "iproute2"], ["CAP_SYS_NICE", "MEMLOCK"]),
        (row("fifo:3", sched="fifo:3", refused="no memory"), ["LimitMEMLOCK="], ["CAP_"]),
        (row("fifo:3 bandwidth:5mbit", "in", sched="other", locked_bytes=1, refused="no"), ["CAP_SYS_NICE"], ["NET_"]),
    ],
)
def test_the_remedy_is_for_what_is_missing(channel, names, others):
    (found,) = priorities([channel])
    assert found.state == "limited"
    assert channel.in_force.refused in found.value
    assert all(name in found.remedy for name in names)
    assert not any(name in found.remedy for name in others)


def test_threads_that_run_before_the_cards_are_named():
    said = "fifo:60 on this node runs before the network card's own threads"
    found = priorities([row("fifo:60", sched="fifo:60", locked_bytes=1, warning=said)])
    assert [(one.name, one.state) for one in found] == [("priorities", "ok"), ("network card's threads", "limited")]
    assert said in found[1].value


def test_whether_bandwidth_can_be_reserved():
    assert bandwidth(lambda name: name, lambda number: True).state == "ok"
    without = bandwidth(lambda name: None, lambda number: True)
    assert "no 'tc' and no 'ip'" in without.value
    assert "iproute2" in without.remedy
    unprivileged = bandwidth(lambda name: name, lambda number: number != 12)
    assert "CAP_NET_ADMIN" in unprivileged.value
    assert "--bandwidth" in unprivileged.remedy
