"""What is asked of variables, a function per row: how many changes, how fast, by how many packets and bytes, how soon
a late joiner is complete, and what it costs the publisher."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringcast.lab.adamant.field.network import HUB
from ringcast.lab.labmap.field import Drive, LabMapNetwork, Setting
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure

PAPER_RATE = 1e4
PAPER_FLOOR_US = 250.0
RELIABLE_MULTICAST = "multicast+nak"
FRAME_S = 0.25
JOIN_LIMIT = 8


def state_changes(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """The greatest rate without a lost change, among a few; counted at the subscriber."""
    steps.expect(2)
    findings = Findings()
    cycles = 60 if quick else 300
    tries: dict[str, Sequence[tuple[int, float]]] = {
        "one by one": ((8000, 0.01), (6000, 0.01), (5000, 0.01), (3000, 0.01), (1000, 0.01)),
        "in batches": ((20000, 0.005), (20000, 0.007), (20000, 0.01), (10000, 0.01), (5000, 0.01)),
    }
    asked = {"one by one": 5e5, "in batches": 2e6}
    for how, rates in tries.items():
        steps.step(f"state changes, {how}")
        best: Drive | None = None
        for n, period_s in rates:
            tried = bed.drive(Setting(n, period_s, batch=how == "in batches"), cycles)
            if tried.lost == 0 and tried.wrong == 0:
                best = tried
                break
        value = best.achieved if best is not None else None
        name = f"state changes per second before loss, 1 subscriber node, {how}"
        findings.rows.append(at_least(name, value, "1/s", asked[how], PAPER_RATE))
    return findings


def latency_floor(bed: LabMapNetwork, quick: bool, steps: Steps) -> tuple[Findings, list[Drive]]:
    """a of T = a + b n/dt over runs that lost nothing."""
    sizes = (1, 10, 100, 1000)
    periods = (0.01, 0.05)
    steps.expect(len(sizes) * len(periods))
    drives = []
    for n in sizes:
        for period_s in periods:
            steps.step(f"latency of {n} variables every {1e3 * period_s:g} ms")
            drives.append(bed.drive(Setting(n, period_s), max(12, round((0.6 if quick else 3.0) / period_s))))
    good = [drive for drive in drives if drive.lost == 0 and drive.mean("p50_us") is not None]
    rows = [
        [f"{d.setting.n}", f"{1e3 * d.setting.period_s:g}", *(_cell(d.mean(what)) for what in _SHOWN)] for d in drives
    ]
    heads = ("n", "period (ms)", *(text for _, text in _SHOWN.items()))
    table = Table("Latency, one subscriber node, idle (us)", heads, rows)
    value = line(good)[0] if len(good) > 2 else None
    name = "latency floor a of T = a + b n/dt, one hop, median, least squares over runs without loss"
    return Findings(rows=[at_most(name, value, "us", 50.0, PAPER_FLOOR_US)], tables=[table]), drives


_SHOWN = {
    "p50_us": "median", "mean_us": "mean", "most_us": "greatest", "deviation_us": "jitter: deviation",
    "period_jitter_us": "jitter: period to period", "send_us": "change to send (t2 - t1)",
}  # fmt: skip


def line(drives: Sequence[Drive]) -> tuple[float, float]:
    """a and b in us and us per change per second, for the display of a run; the job 'fit' has the standard errors."""
    rates = np.array([drive.setting.rate for drive in drives])
    values = np.array([drive.mean("p50_us") for drive in drives], dtype=np.float64)
    b, a = np.polyfit(rates, values, 1)
    return float(a), float(b)


def multicast_cost(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """System calls that send, and packets that leave the publisher's node, per change, for five nodes and for one."""
    steps.expect(2)
    findings, found = Findings(), {}
    cycles = 60 if quick else 300
    for subscribers in (1, 5):
        steps.step(f"multicast to {subscribers} node(s)")
        setting = Setting(2000, 0.02, subscribers, RELIABLE_MULTICAST)
        nodes = bed.there(subscribers)
        with bed.bench(setting.n, nodes, setting.transport, frame_s=60.0) as tag, _counted(bed) as calls:
            drive = bed.repeat(tag, setting, cycles, nodes)
        found[subscribers] = (calls(), drive.packets, drive.sent["changes"], drive.lost)
    (calls1, packets1, changes1, _), (calls5, packets5, changes5, _) = found[1], found[5]
    if calls1 is None or calls5 is None:
        findings.notes.append("system calls were not counted: strace is not installed")
    per = {
        "system calls": (None if calls5 is None else calls5 / changes5, None if calls1 is None else calls1 / changes1),
        # Heartbeats and what daemons tell each other are packets too; they do not come from changes.
        "packets": (packets5 / changes5, packets1 / changes1),
    }
    for what, (five, one) in per.items():
        name = f"multicast: publisher's {what} per change, 5 nodes against 1 (within 5 % is equal)"
        findings.rows.append(at_most(name, five, "1", None if one is None else 1.05 * one, one))
    return findings


@contextlib.contextmanager
def _counted(bed: LabMapNetwork) -> Any:
    """Counts the system calls of the publisher's process that send, while the block runs."""
    if shutil.which("strace") is None:
        yield lambda: None
        return
    pid = bed.process(bed.here).pid
    tracer = subprocess.Popen(
        ["strace", "-f", "-c", "-e", "trace=sendmmsg,sendmsg,sendto", "-p", str(pid)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(0.3)
    said: list[str] = []

    def calls() -> int | None:
        found = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+).*send", said[0], re.MULTILINE) if said else []
        return sum(map(int, found)) if found else None

    try:
        yield calls
    finally:
        tracer.send_signal(2)
        said.append(tracer.communicate(timeout=10)[1])


def on_change_bytes(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """Bytes of a stream on change beside a periodic one, of the same variables, 1 % of them changing per cycle."""
    steps.expect(2)
    found: dict[str, float] = {}
    cycles, period_s, n = 100, 0.02, 5000
    policies = {"on change": {"kind": "on change"}, "periodic": {"kind": "periodic", "period_s": period_s}}
    for how, policy in policies.items():
        steps.step(f"bytes, {how}")
        node = bed.there(1)[0]
        with bed.bench(n, [node], "nak", observer={"policy": policy}) as tag:
            before = _view_bytes(bed, node, tag)
            publisher = bed.process(bed.here)
            publisher.ask("drive", 60.0, name=tag, cycles=cycles, period_s=period_s, batch=True, share=0.01)
            found[how] = _view_bytes(bed, node, tag) - before
    ratio = found["on change"] / found["periodic"] if found["periodic"] else None
    name = "on change, 1 % of variables changing, 100 cycles, full packets included: bytes against periodic"
    return Findings(rows=[at_most(name, ratio, "1", 0.1)])


def _view_bytes(bed: LabMapNetwork, node: str, tag: str) -> int:
    rows = [row for row in bed.mesh.sessions[node].channels() if row.direction == "in"]
    return sum(row.bytes or 0 for row in rows if row.tag.startswith("@view/") and row.tag.endswith(tag))


def late_joiners(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """How long until a joiner knows everything, while 3 % of packets are lost and nobody sends a packet for joiners."""
    steps.expect(2)
    findings = Findings()
    nodes = bed.there(5)
    limits = {"nak": (1.0, 1.0, "complete within one frame"), "udp": (3.0, 0.99, "complete within three frames")}
    for transport, (frames, share, said) in limits.items():
        steps.step(f"late joiners by {transport}")
        times = 20 if quick or transport == "nak" else 100
        found = joins(bed, nodes, 2000, transport, times if transport == "udp" else times // 2, loss=0.03)
        within = sum(one is not None and one <= frames * FRAME_S for one in found) / len(found)
        kind = "by nak" if transport == "nak" else "unreliable"
        name = f"late joiner, join-triggered packets off, 3 % loss, {kind}: {said}, of {len(found)} joins"
        findings.rows.append(at_least(name, 100 * within, "%", 100 * share))
    return findings


def joins(
    bed: LabMapNetwork, nodes: Sequence[str], n: int, transport: str, times: int, loss: float, frame_s: float = FRAME_S
) -> list[float | None]:
    """Seconds from joining to knowing everything, of so many joins on each node."""
    tag = bed.tag()
    publisher = bed.process(bed.here)
    publisher.ask("open", end="ringcast.lab.labmap.ends:Bench", name=tag, tag=tag, n=n, frame_s=frame_s, on_join=False)
    bed.mesh.wait_for_publisher(tag)
    found: list[float | None] = []
    try:
        for node in nodes:
            bed.process(node).ask("open", end="ringcast.lab.labmap.ends:Joiner", name=tag, tag=tag, transport=transport)
        bed.lose(loss, nodes)
        for node in nodes:
            bed.process(node).post("join", name=tag, times=times, limit_s=JOIN_LIMIT * frame_s)
        for node in nodes:
            found += bed.process(node).reply(30.0 + times * (JOIN_LIMIT * frame_s + 1))
    finally:
        bed.lose(0.0, nodes)
        for node in nodes:
            bed.process(node).ask("close", name=tag)
        publisher.ask("close", name=tag)
    return found


def ordinary(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """20,000 variables every 50 ms to 5 nodes."""
    steps.expect(1)
    steps.step("20,000 variables every 50 ms to 5 nodes")
    drive = bed.drive(Setting(20000, 0.05, 5, RELIABLE_MULTICAST), 60 if quick else 200)
    seconds = drive.sent["seconds"]
    said = "20,000 variables, period 50 ms, 5 nodes"
    return Findings(
        rows=[
            at_most(f"{said}: publisher's process", 100 * drive.sent["cpu_s"] / seconds, "% of a core", 20.0),
            at_most(f"{said}: publisher's daemon", 100 * drive.daemon_cpu_s / seconds, "% of a core", 20.0),
            at_most(f"{said}: variables late or lost", float(drive.lost), "1", 0.0),
            figure(f"{said}: softirq time of the machine", 100 * drive.softirq_s / seconds, "% of a core"),
        ]
    )


# The kernel floods until its querier has waited for a response interval, which is ten seconds unless said otherwise.
_SNOOPING = "mcast_query_response_interval 50 mcast_query_interval 100 mcast_snooping 1 mcast_querier 1"


def filtered(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """Two selections, two groups: what arrives at a node that joined one of them, and at one that joined none, when the
    bridge listens to IGMP."""
    steps.expect(1)
    steps.step("groups behind a bridge with IGMP snooping")
    bed.mesh.bed.run_scripts(
        {HUB: f"ip link set dev bridge type bridge {_SNOOPING}"},
        "the bridge cannot listen to IGMP",
    )
    time.sleep(2.0)
    one, other, stranger = bed.there(3)
    try:
        with bed.bench(
            4000, [one], RELIABLE_MULTICAST, observer={"select": ["bench/block1*/**"]}, frame_s=60.0
        ) as tag:  # fmt: skip
            bed.process(other).ask(
                "open", 30.0, end="ringcast.lab.labmap.ends:Observer", name=f"{tag}-2", tag=tag,
                transport=RELIABLE_MULTICAST, select=["bench/block2*/**"],
            )  # fmt: skip
            before = [_received(bed, node) for node in (one, other, stranger)]
            bed.process(bed.here).ask("drive", 60.0, name=tag, cycles=100, period_s=0.02)
            time.sleep(0.2)
            came = [_received(bed, node) - old for node, old in zip((one, other, stranger), before, strict=True)]
            bed.process(other).ask("close", name=f"{tag}-2")
    finally:
        bed.mesh.bed.run_scripts({HUB: "ip link set dev bridge type bridge mcast_snooping 0"}, "cannot reset it")
    share = came[2] / max(came[0], came[1], 1)
    return Findings(
        rows=[
            figure("two selections by multicast: bytes at the node that joined the first", float(came[0]), "B"),
            figure("two selections by multicast: bytes at the node that joined the second", float(came[1]), "B"),
            at_most(
                "bridge with IGMP snooping: bytes at a node that joined none, against one that did", share, "1", 0.1
            ),
        ]
    )


def _received(bed: LabMapNetwork, node: str) -> int:
    lines = Path(f"/proc/{bed.mesh.pids[node]}/net/dev").read_text().splitlines()
    return int(next(row for row in lines if row.strip().startswith(f"to-{HUB}:")).split()[1])


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


PARTS: Sequence[Callable[[LabMapNetwork, bool, Steps], Findings]] = (
    state_changes, multicast_cost, on_change_bytes, late_joiners, ordinary, filtered,
)  # fmt: skip
