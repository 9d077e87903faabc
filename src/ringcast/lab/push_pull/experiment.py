"""`ringcast lab run push-pull`: all experiments of the push-pull papers, one after the other."""

from __future__ import annotations

from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.push_pull import (
    agreement,
    components,
    distance,
    fan_out,
    network,
    peer_round_trips,
    round_trips,
    streams,
    tables,
)
from ringcast.lab.testbed.disturbance import Disturbance

PIPELINES = (*round_trips.PIPELINES, components.PIPELINE)


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    others = Disturbance()
    # What is asked for comes first, so that whoever interrupts has seen it.
    with peer_round_trips.WireNetwork() as pair:
        findings.add(peer_round_trips.round_trips(pair, quick, steps))
        findings.add(fan_out.measure(pair, quick, steps))
        findings.add(streams.throughput(pair, quick, steps))
    with peer_round_trips.WireNetwork(offload=False) as plain:
        findings.add(streams.throughput(plain, quick, steps))
    with network.PushPullNetwork() as paper:
        batches = network.collect(paper, tables.wanted() + distance.wanted(), 5 if quick else 30, steps)
        findings.measured += [*round_trips.measured(batches), *round_trips.paper()]
        findings.measured += components.measure(paper, quick, steps)
    findings.add(agreement.real(quick, steps))
    findings.rows += others.rows()
    findings.add(agreement.simulated(quick, steps))
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Add what Spark made of the samples: the papers' tables, beside the papers' figures."""
    trips = round_trips.RoundTrips.of(analysed)
    findings.add(tables.conclude(trips))
    findings.add(distance.conclude(trips))
    findings.add(components.conclude(components.components(analysed.rows(components.TABLE))))
