"""From samples to rows and tables, for every experiment of the push-pull papers."""

from __future__ import annotations

import pytest

from ringcast.lab.push_pull import agreement, components, distance, fan_out, streams, tables, wire
from ringcast.lab.push_pull.network import BETWEEN, INTERMEDIATE, PUBLISHER, SUBSCRIBER, Arrangement, collect
from ringcast.lab.testbed.peers import MISSING


def made_up(arrangement: Arrangement, size: int) -> int:
    """Nanoseconds as the papers have them: a hop for an intermediate proxy, linear in size, hops and subscribers."""
    ns = 1000 + 10_000 * min(arrangement.hops, 1) + 2_000 * max(arrangement.hops - 1, 0)
    ns += 5_500 if arrangement.proxy == INTERMEDIATE else 0
    return ns + 10 * size + 1_000 * arrangement.subscribers


def batches(rounds: int = 3, delay=made_up):
    return {pair: [[delay(*pair)] * 100] * rounds for pair in tables.wanted() + distance.wanted()}


def named(findings, words: str):
    found = [row for row in findings.rows if words in row.name]
    assert len(found) == 1, [row.name for row in found]
    return found[0]


def test_table_1_asks_for_proxies_that_have_something_to_do():
    findings = tables.conclude(batches())
    for what in ("every other message", "arrays at their own size"):
        near = named(findings, f"proxy at publisher, {what}, against none")
        assert (near.value, near.target, near.met) == (1.0, 1.05, True)
    far = named(findings, "proxy at intermediate node, udp, against none")
    assert far.value == pytest.approx(1 + 5_500 / 12_640, rel=1e-3)
    assert far.reference == pytest.approx(1.555, rel=1e-3)
    assert far.met is True


def test_a_dear_proxy_is_not_met():
    dear = batches(delay=lambda a, size: made_up(a, size) * (2 if a.proxy in (SUBSCRIBER, INTERMEDIATE) else 1))
    findings = tables.conclude(dear)
    for what in ("every other message", "arrays at their own size"):
        assert named(findings, f"proxy at subscriber, {what}, against none").met is False
        assert named(findings, f"proxy at publisher, {what}, against none").met is True
    for transport in ("udp", "nak"):
        assert named(findings, f"proxy at intermediate node, {transport}, against none").met is False


def test_a_proxy_that_is_dear_when_it_works_is_not_met():
    findings = tables.conclude(batches(delay=lambda a, size: made_up(a, size) + 5_000 * (a.every - 1)))
    assert named(findings, "proxy at publisher, every other message, against none").met is False
    assert named(findings, "proxy at publisher, arrays at their own size, against none").met is True


def test_growth_with_subscribers_and_of_the_proxys_share_is_judged():
    grows = tables.conclude(batches(delay=lambda a, size: made_up(a, size) + 2 * size * (a.proxy == INTERMEDIATE)))
    assert named(grows, "grows with subscribers: 8 against 1").met is True
    assert named(grows, "adds grows with length").met is True
    shrinks = tables.conclude(
        batches(delay=lambda a, size: made_up(a, size) - 1_500 * a.subscribers - 2 * size * (a.proxy == INTERMEDIATE))
    )
    assert named(shrinks, "grows with subscribers: 8 against 1").met is False
    assert named(shrinks, "adds grows with length").met is False


def test_a_router_that_takes_its_time_by_the_byte_is_a_line():
    by_byte = distance.conclude(batches(delay=lambda a, size: made_up(a, size) + a.hops * size))
    assert named(by_byte, "delay of one router grows").met is True
    level = distance.conclude(batches(delay=lambda a, size: made_up(a, size) + a.hops * (size % 7) * 100))
    assert named(level, "delay of one router grows").met is False


def test_tables_stand_beside_the_papers_figures():
    table_1, table_2, table_3 = tables.conclude(batches()).tables
    assert table_1.rows[0] == ["no proxy", "12.64", "0.00", "6.0129", "0.0119"]
    assert table_2.heads[1:] == ["64 B", "256 B", "512 B", "1024 B", "1536 B", "1792 B"]
    assert [row[1] for row in table_2.rows] == ["12.64", "5.914", "15.64", "5.975", "19.64", "8.973"]
    assert [row[-1] for row in table_3.rows] == ["35.42", "14.986"]


def test_linear_growth_is_recognised_and_its_absence_too():
    straight = named(tables.conclude(batches()), "linearly with size, no proxy")
    assert (straight.value, straight.met) == (1.0, True)
    flat = tables.conclude(batches(delay=lambda a, size: 20_000 - size))
    assert named(flat, "linearly with size, no proxy").met is False


def test_experiments_1_to_4_and_the_routers():
    findings = distance.conclude(batches())
    assert [table.title[:12] for table in findings.tables] == [
        *(f"Experiment {n}" for n in range(1, 5)),
        "Figure 10: w",
    ]
    assert named(findings, "experiment 4, three hops, proxy at publisher, 64 B").value == pytest.approx(16.64)
    assert named(findings, "figure 10, one router, 64 B").value == 2.0
    assert named(findings, "figure 10, two routers, 64 B").value == 4.0
    assert named(findings, "linearly with hops").met is True
    assert named(findings, "a remote proxy costs more than one at the publisher, one hop").met is True
    assert [len(picture.series) for picture in findings.pictures] == [3, 3, 2, 2, 2]


def test_hops_that_cost_less_are_no_line():
    findings = distance.conclude(batches(delay=lambda a, size: {0: 1, 1: 9, 2: 12, 3: 8}[a.hops] * 1000 + size))
    assert named(findings, "linearly with hops").met is False


def wire_batches(ours: int, peer: int | None, bare: int = 100_00):
    found = {}
    for where in (wire.ONE, wire.TWO):
        found[where, wire.OURS], found[where, wire.BARE] = [[ours] * 50] * 2, [[bare] * 50] * 2
        if peer:
            found[where, "slow"], found[where, "fast"] = [[peer * 2] * 50] * 2, [[peer] * 50] * 2
    return found


def test_the_fastest_peer_is_the_reference():
    findings = wire.conclude(wire_batches(20_000, 46_000), {})
    row = named(findings, "all on one core: 2.3 times faster")
    assert "(fast)" in row.name
    assert (row.value, row.reference, row.target, row.met) == (20.0, 46.0, 20.0, True)
    assert named(findings, "each node on its own core: 1.2 times faster").met is True
    assert named(findings, "at most 2.2 times").met is True


def test_too_slow_is_not_met():
    findings = wire.conclude(wire_batches(23_000, 46_000), {})
    assert named(findings, "all on one core: 2.3 times faster").met is False
    assert named(findings, "at most 2.2 times").met is False


def test_without_peers_rows_say_how_to_get_them_and_judge_nothing():
    findings = wire.conclude(wire_batches(20_000, None), {"zenoh": "cannot import"})
    row = named(findings, "all on one core: 2.3 times faster")
    assert MISSING in row.name
    assert (row.value, row.reference, row.target, row.met) == (20.0, None, None, None)
    assert findings.notes == ["zenoh is left out: cannot import"]


def test_on_one_core_the_line_for_two_is_there_and_not_measured():
    found = {key: value for key, value in wire_batches(20_000, 46_000).items() if key[0] == wire.ONE}
    row = named(wire.conclude(found, {}), "each node on its own core")
    assert (row.value, row.met) == (None, None)


def test_streams_are_judged_by_messages_and_by_bytes():
    small, big = streams.SMALL.title, streams.BIG.title
    rates = {(small, "ringcast"): 3e6, (small, "peer"): 1e6, (big, "ringcast"): 900.0, (big, "peer"): 1000.0}
    findings = streams.conclude(rates, {})
    assert (named(findings, "messages per second between two nodes, reliable (tcp)").met) is True
    slow = named(findings, "bytes per second")
    assert slow.value == pytest.approx(900 * 2**20, rel=1e-3)
    assert slow.met is False
    packets = streams.conclude(rates, {}, streams.WITHOUT)
    assert all("packet by packet" in row.name for row in packets.rows)
    alone = streams.conclude({(small, "ringcast"): 3e6, (big, "ringcast"): 900.0}, {})
    assert all(row.met is None and row.reference is None for row in alone.rows)


def test_fan_out_is_a_factor():
    assert fan_out.conclude({1: [[100] * 9] * 2, 10: [[105] * 9] * 2}).rows[0].met is True
    assert fan_out.conclude({1: [[100] * 9] * 2, 10: [[120] * 9] * 2}).rows[0].met is False


def test_the_slowest_change_decides():
    assert agreement.conclude([0.01, 0.02, 0.9]).rows[0].met is True
    assert agreement.conclude([0.01, 0.02, 1.1]).rows[0].met is False


def parts(whole: float):
    near = {**dict.fromkeys(components.COMPONENTS[:5], 1000.0), components.WHOLE: whole}
    found = {place: dict(near) for place in components.PLACES}
    found[components.REMOTE] |= {"proxy cpu": 2000.0, "proxy communication": 3000.0, components.WHOLE: 2 * whole}
    return components.conclude(found)


def test_table_4_has_all_components():
    findings = parts(5500.0)
    (table,) = findings.tables
    assert [row[0] for row in table.rows] == [*components.COMPONENTS, "all of them", "the whole, measured"]
    assert table.rows[0][1:3] == ["1.00", "0.2816"]
    assert table.rows[5][1:] == ["-", "-", "-", "-", "2.00", "0.0420"]
    assert table.rows[-2][1:] == ["5.00", "-", "5.00", "-", "10.00", "-"]
    assert named(findings, "table 4, proxy on remote node: proxy communication").reference == pytest.approx(496.6)


@pytest.mark.parametrize(("whole", "met"), [(3900.0, False), (4100.0, True), (6500.0, True), (7000.0, False)])
def test_parts_that_do_not_add_up_are_seen(whole, met):
    findings = parts(whole)
    assert [named(findings, f"{place}: the parts add up").met for place in components.PLACES] == [met] * 3


class FakeNetwork:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.arranged: list[Arrangement] = []
        self.measured: list[tuple[Arrangement, int]] = []

    def arrange(self, arrangement):
        self.arranged.append(arrangement)

    def pin(self, **cores):
        assert not self.measured

    def round_trips(self, arrangement, size):
        self.measured.append((arrangement, size))
        return [1]


class Steps:
    def __init__(self) -> None:
        self.expected = self.taken = 0

    def expect(self, number):
        self.expected += number

    def step(self, what):
        self.taken += 1


def test_rounds_go_back_and_forth_with_neighbours_of_one_size():
    network, steps = FakeNetwork(), Steps()
    one, other = Arrangement(1), Arrangement(1, PUBLISHER)
    found = collect(network, [(one, 64), (one, 1), (other, 64), (other, 1), (one, 64)], 2, steps)
    forth = [(one, 1), (other, 1), (one, 64), (other, 64)]
    assert network.measured == forth + forth[::-1]
    assert network.arranged == [one, other]
    assert all(len(rounds) == 2 for rounds in found.values())
    assert steps.taken == steps.expected


def test_the_way_of_a_message():
    assert Arrangement(1).way == ["a", "b"]
    assert Arrangement(3, INTERMEDIATE).way == ["a", BETWEEN, "e"]
