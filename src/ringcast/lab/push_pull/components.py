"""Paper 001, Table 4: the components of the delay from publisher to subscriber, for three places of the proxy. The
paper has six; that the subscriber's daemon receives is a seventh here.

| component | here |
|---|---|
| publisher, computing | `send` when nobody subscribes: into the ring |
| publisher, communication | what `send` takes more with a subscriber on another node: one datagram |
| subscriber, receiving | processor time per message, of its daemon or its own thread: it puts it into a ring |
| proxy, computing | the same on the proxy's node |
| proxy, communication | what the daemon on the proxy's node takes more: it sends the message on |
| subscriber, ipc | from the message in the node's ring until the sleeping subscriber has it |
| subscriber, computing | `recv` of a message that is there |

The paper leaves out the network's own processing. On a virtual wire that is the kernel's work, and the kernel does the
receiver's part in the sender's call, so here it is in the communication components.

This module measures samples; the pipeline `components` makes the components of them. The whole is measured by itself:
from `send` until the sleeping subscriber has the message. The parts should add up to it; what they leave is the
kernel's time to wake threads, which is nobody's processor time.
The publisher's node has a core of its own if there are two, or a thread that is woken there would be timed with `send`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ringcast.lab.measuring import reference
from ringcast.lab.measuring.report import Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import Row, figure, tidy
from ringcast.lab.push_pull.network import BETWEEN, HERE, THERE, PushPullNetwork
from ringcast.lab.testbed import affinity
from ringcast.record.figures import Measured

PLACES = {
    "proxy at subscriber": "subscriber",
    "proxy at publisher": "publisher",
    "proxy on remote node": f"node:{BETWEEN}",
}
COMPONENTS = (
    "publisher cpu", "publisher communication", "subscriber receiving", "subscriber ipc", "subscriber cpu", "proxy cpu",
    "proxy communication",
)  # fmt: skip
WHOLE = "whole"
WITHIN = 0.25
"""The parts are said to add up when their sum is no farther than that from the whole, as a share of it."""
REMOTE = "proxy on remote node"
SIZE = 64
GAP_NS = 150_000
_WARM = 10
_WAITING = 64
MS = 1e3
EXPERIMENT, METRIC = "push-pull delay", "delay_part"
TABLE = "gold.components"
PIPELINE = "components"
ALONE, HEARD, WOKEN, WHOLE_WAY, TAKEN = "send alone", "send", "waking", "whole", "taking"
RECEIVER, BETWEEN_BOTH = "receiving daemon", "proxy daemon"
"""Parts that are measured: nanoseconds of each message, and of the daemons per message, all at once."""
Samples = dict[str, list[float]]
Components = Mapping[str, Mapping[str, float]]
"""Microseconds by place and component, and of the whole."""


def measure(network: PushPullNetwork, quick: bool, steps: Steps) -> Iterator[Measured]:
    """Raises ActorFailed, LabError."""
    steps.expect(len(PLACES))
    cores = affinity.cores()
    for place, at in PLACES.items():
        steps.step(f"delay components, {place}")
        lonely, tag = network.tag(), network.tag()
        pacer, reader = network.actor(HERE), network.actor(THERE)
        for name in (lonely, tag):
            pacer.ask("open", end="pacer", name=name, tag=name)
        network.mesh.wait_for_publisher(tag)
        reader.ask("open", end="reader", name=tag, tag=tag, at=at)
        way = [HERE, BETWEEN, THERE] if place == REMOTE else [HERE, THERE]
        network.mesh.wait_for_way(tag, *way)
        network.pin(**{HERE: cores[0], THERE: cores[-1], BETWEEN: cores[-1]})
        samples = _publisher(network, lonely, tag, 100 if quick else 1000)
        samples |= _subscriber(network, tag, 20 if quick else 100)
        samples |= _daemons(network, tag, 500 if quick else 4000, remote=place == REMOTE)
        yield from measured(place, samples)
        for name in (lonely, tag):
            pacer.ask("close", name=name)
        reader.ask("close", name=tag)


def measured(place: str, samples: Samples) -> Iterator[Measured]:
    """As values for the lake."""
    for part, taken in samples.items():
        for ns in taken:
            yield Measured(EXPERIMENT, {"place": place, "part": part, "size": SIZE}, 0, METRIC, float(ns), "ns")


def components(rows: Iterable[Mapping[str, Any]]) -> Components:
    """Of the table that the pipeline made."""
    found: dict[str, dict[str, float]] = {place: {} for place in PLACES}
    for row in rows:
        found[row["place"]][row["component"]] = row["us"]
    return found


def _send(network: PushPullNetwork, tag: str, count: int, gap_ns: int = GAP_NS) -> list[int]:
    timeout_s = 10.0 + 2 * count * gap_ns / 1e9
    taken: list[int] = network.actor(HERE).ask("send", timeout_s, name=tag, count=count, gap_ns=gap_ns, size=SIZE)
    return taken


def _publisher(network: PushPullNetwork, lonely: str, tag: str, count: int) -> Samples:
    alone: list[float] = []
    heard: list[float] = []
    for _ in range(4):
        alone += _send(network, lonely, count // 4)
        heard += _send(network, tag, count // 4)
    network.actor(THERE).ask("skip", name=tag)
    return {ALONE: alone, HEARD: heard}


def _subscriber(network: PushPullNetwork, tag: str, count: int) -> Samples:
    reader = network.actor(THERE)
    woken: list[float] = []
    whole: list[float] = []
    for _ in range(count):
        reader.post("follow", name=tag, count=_WARM)
        _send(network, tag, _WARM)
        last = reader.reply()
        whole.append(last["received_ns"] - last["sent_ns"])
        woken.append(last["received_ns"] - (last["sent_ns"] + _last_delay_ns(network, tag)))
    taken: list[float] = []
    for _ in range(max(1, count // 10)):
        _send(network, tag, _WAITING, gap_ns=20_000)
        _until_quiet(network, tag)
        taken += reader.ask("take", name=tag, count=_WAITING)
    return {WOKEN: woken, TAKEN: taken, WHOLE_WAY: whole}


def _daemons(network: PushPullNetwork, tag: str, count: int, *, remote: bool) -> Samples:
    """No subscriber waits for these messages: they are only received and stored, by the subscriber's daemon, or for a
    direct channel by a thread of the subscriber's process, which does nothing else meanwhile."""
    pids = {BETWEEN: [network.mesh.pids[BETWEEN]], THERE: [network.mesh.pids[THERE], network.actor(THERE).pid]}

    def used() -> dict[str, int]:
        return {node: sum(map(affinity.cpu_ns, some)) for node, some in pids.items()}

    before = used()
    idle_from = time.monotonic()
    _send(network, tag, count)
    seconds = time.monotonic() - idle_from
    after = used()
    time.sleep(seconds)  # as long again, to know what the daemons do anyway
    quiet = used()
    work = {node: ((after[node] - before[node]) - (quiet[node] - after[node])) / count for node in after}
    network.actor(THERE).ask("skip", name=tag)
    return {RECEIVER: [work[THERE]], **({BETWEEN_BOTH: [work[BETWEEN]]} if remote else {})}


def _last_delay_ns(network: PushPullNetwork, tag: str) -> int:
    """From `send` until the last message was in the ring of the subscriber's node."""
    rows = network.mesh.sessions[THERE].channels()
    return next(row.counters["last_delay_ns"] for row in rows if row.tag == tag and row.direction == "in")


def _until_quiet(network: PushPullNetwork, tag: str) -> None:
    """Until all that was sent has come."""
    count = -1
    while True:
        rows = network.mesh.sessions[THERE].channels()
        now = next(row.messages or 0 for row in rows if row.tag == tag and row.direction == "in")
        if now == count:
            return
        count = now
        time.sleep(0.002)


def _adds_up(place: str, parts: float, whole: float) -> Row:
    """Can be off either way: something counted twice, or left out."""
    share = parts / whole if whole > 0 else None
    met = share is not None and abs(share - 1) <= WITHIN
    name = f"table 4, {place}: the parts add up to the whole, which took {whole:.1f} us, within {WITHIN:.0%}"
    return Row(name, tidy(share), "times", None, 1.0, met, "shape")


def conclude(found: Components) -> Findings:
    """Pure."""
    findings, cells, series = Findings(), [], []
    for component in COMPONENTS:
        row = [component]
        for place in PLACES:
            value = found[place].get(component)
            paper = reference.figure("4", component, place, reference.PUSH_PULL_QOS)
            row += ["-" if value is None else f"{value:.2f}", "-" if paper is None else f"{paper * MS:.4f}"]
            if value is not None:
                name = f"table 4, {place}: {component}"
                findings.rows.append(figure(name, value, "us", None if paper is None else paper * 1e6))
        cells.append(row)
    sums = {place: sum(found[place].get(name, 0.0) for name in COMPONENTS) for place in PLACES}
    for label, values in (
        ("all of them", sums), ("the whole, measured", {place: found[place][WHOLE] for place in PLACES})
    ):  # fmt: skip
        cells.append([label, *(text for place in PLACES for text in (f"{values[place]:.2f}", "-"))])
    findings.rows += [_adds_up(place, sums[place], found[place][WHOLE]) for place in PLACES]
    heads = ["64 B", *(head for place in PLACES for head in (f"{place} (us)", "paper (ms)"))]
    findings.tables.append(Table("Table 4 of paper 001: components of the delay", heads, cells))
    for place in PLACES:
        points = [(float(at), found[place][name]) for at, name in enumerate(COMPONENTS) if name in found[place]]
        series.append(Series(place, points))
    papers = [reference.figure("4", name, REMOTE, reference.PUSH_PULL_QOS) or 0.0 for name in COMPONENTS]
    series.append(Series("paper, remote", [(float(at), p * MS) for at, p in enumerate(papers)], paper=True))
    findings.pictures.append(
        Picture("table-4-delay-components", "Table 4: components of the delay from publisher to subscriber, 64 B", "",
                "here (us)", series, "bars", [name.replace(" ", "\n", 1) for name in COMPONENTS], "paper (ms)")
    )  # fmt: skip
    return findings
