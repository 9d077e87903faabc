"""Rows of `lab run security` are computed from what is in the lake: attacks, costs, joining, floods."""

from __future__ import annotations

from lab_fakes import named

from ringcast.lab.measuring.report import Findings
from ringcast.lab.measuring.rows import figure
from ringcast.lab.measuring.sampled import PIPELINES, InPython
from ringcast.lab.security import attacks, costs, datagrams, experiment, floods
from ringcast.lab.security.attacks import KINDS, Outcome
from ringcast.lab.security.cells import CALM, FLOODED, Flood, Joined, streamed, values
from ringcast.lab.security.datagrams import Flooded
from ringcast.record.figures import Measured


def of_attacks(**changed: Outcome) -> list[Measured]:
    outcomes = dict.fromkeys(KINDS, Outcome(sent=20_000, forged=20_000, memory_bytes=4096))
    return list(attacks.counted({**outcomes, **changed}))


def of_costs() -> list[Measured]:
    """Machines that are slow for a while are so for both: of each round the ratio is 1.2."""
    trips = {"plain": [1e-4, 5e-4, 2e-4], "sealed": [1.2e-4, 6e-4, 2.4e-4]}
    rates = {"plain": [100.0, 400.0, 300.0], "sealed": [50.0, 320.0, 240.0]}
    return [*costs.measured("round trip by udp", trips, "taken", "s"),
            *costs.measured(costs.STREAM, rates, "rate", "messages/s")]  # fmt: skip


def of_floods() -> list[Measured]:
    flooded = Flooded(calm_ns=[1000] * 10, flooded_ns=[4000] * 10, missing=0, dropped=9, grown_bytes=512, failed=1,
                      overheard=True)  # fmt: skip
    return [*streamed("requests", 500, [1000] * 100, [2000] * 100, 3), *datagrams.counted(flooded, 700),
            *values(Joined("invitation"), "joining", [[0.3], [6.0], [0.5]], "s")]  # fmt: skip


def test_no_packet_of_an_attacker_may_be_accepted() -> None:
    found = attacks.judged(InPython(of_attacks(replayed=Outcome(sent=20_000, accepted=2, memory_bytes=2**20))))
    row = named(found, "sent again: accepted")
    assert (row.name[:14], row.value, row.met) == ("20,000 packets", 2, False)
    assert sum(row.met is True for row in found.rows) == len(KINDS) - 1 + 1  # the others, and no crash
    assert named(found, "memory grown").value == 1_049_000
    (table,) = found.tables
    assert table.heads == ["attack", "sent", "accepted", "forged", "replayed", "old key", "reflected", "unreadable",
                           "memory"]  # fmt: skip
    assert ["replayed", "20000", "2", "0", "0", "0", "0", "0", "1048576"] in table.rows


def test_of_an_attack_that_crashed_nothing_is_known_and_nothing_is_met() -> None:
    found = attacks.judged(InPython(of_attacks(forged=Outcome(crashed=True, said="it died"))))
    row = named(found, KINDS["forged"])
    assert (row.value, row.met) == (None, False)
    assert named(found, "crashes").value == 1
    assert ["forged", *["-"] * 8] in found.tables[0].rows


def test_costs_of_seals_are_compared_within_a_round() -> None:
    found = Findings(costs.judged(InPython(of_costs())))
    ratio = named(found, "round trip of 64 B by udp, sealed against not")
    assert (ratio.value, ratio.target, ratio.met) == (1.2, 1.25, True)
    assert named(found, "by udp, plain").value == 100.0
    assert named(found, "a second by tcp, sealed against not").value == 0.8
    assert found.rows[-1] == figure("messages of 1 KiB a second by tcp, sealed", 320.0, "messages/s")


def test_a_stream_beside_a_flood_is_judged_by_the_one_before() -> None:
    analysed = InPython(of_floods())
    requests = Findings(floods.judged(analysed))
    assert [(row.value, row.met) for row in requests.rows] == [(3, False), (2.0, True)]
    assert [row.name for row in requests.rows][1] == "500 requests: p99 of the stream"
    of_datagrams = Findings(datagrams.judged(analysed))
    assert [(row.value, row.met) for row in of_datagrams.rows] == [
        (0, True), (4.0, False), (512, True), (1, False), (9, True),
    ]  # fmt: skip
    assert named(of_datagrams, "p99").target == 3.0


def test_a_long_flood_leaves_a_bounded_number_of_delays() -> None:
    found = [one for one in streamed("requests", 500, [1], list(range(50_000)), 0) if one.metric == "delay"]
    assert len(found) == 10_001
    assert {one.configuration["when"] for one in found} == {CALM, FLOODED}
    assert found[-1].value == 49_999e-9
    assert Flood("requests", 500, CALM)._asdict() == found[0].configuration


def test_everything_that_is_said_is_computed_from_the_lake() -> None:
    assert experiment.PIPELINES == PIPELINES
    analysed = InPython([*of_attacks(), *of_costs(), *of_floods()])
    said = experiment._concluded(analysed)
    assert len({row.name for row in said.rows}) == len(said.rows)
    findings = Findings([figure(row.name, -1.0, row.unit) for row in said.rows])
    experiment.conclude(findings, analysed)
    assert findings.rows == said.rows
    joined = named(findings, "the slowest of several")
    assert (joined.value, joined.met) == (6.0, False)
    assert named(findings, "invitation, median").value == 0.5
