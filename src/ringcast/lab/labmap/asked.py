"""What is asked of variables, a function per row: how many changes, how fast, by how many packets and bytes, and what
it costs the publisher."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ringcast.lab.labmap.field import Drive, LabMapNetwork, Setting
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.testbed import affinity

PAPER_RATE = 1e4
PAPER_FLOOR_US = 250.0
RELIABLE_MULTICAST = "multicast+nak"
REPETITIONS = 3
RATES: dict[str, Sequence[tuple[int, float]]] = {
    "one by one": ((10000, 0.01), (6000, 0.01), (5000, 0.01), (3000, 0.01), (1000, 0.01)),
    "in batches": ((20000, 0.005), (20000, 0.008), (20000, 0.01), (10000, 0.01), (5000, 0.01)),
}
"""From the fastest on: variables and a period."""
NO_PAUSE_S = 0.0005
"""So short a period that what a change needs is still in the caches from the one before."""
FLOOR = tuple((n, period_s) for n in (1, 10, 100, 1000) for period_s in (0.01, 0.05))
ALONE = ((1, 0.005), (1, NO_PAUSE_S))
"""Shown beside, and not fitted."""


class Kind(NamedTuple):
    """How packets are sent and waited for."""

    heads_up: bool
    observer: dict[str, Any]
    fitted: Sequence[tuple[int, float]] = FLOOR
    alone: Sequence[tuple[int, float]] = ALONE


WITH, WITHOUT = "with heads-ups", "without heads-ups"
KINDS = {
    WITH: Kind(True, {}),
    WITHOUT: Kind(False, {}),
    "without heads-ups, busy_poll": Kind(False, {"busy_poll": True}, (), (*FLOOR[:2], *ALONE)),
}
BARE = tuple((pause_s, poll) for pause_s in (0.01, 0.05) for poll in (False, True))


def state_changes(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """The greatest rate of a few at which a repetition lost nothing; counted at the subscriber."""
    findings = Findings()
    cycles = 60 if quick else 300
    asked = {"one by one": 5e5, "in batches": 2e6}
    steps.expect(len(RATES))
    for how, rates in RATES.items():
        steps.step(f"state changes, {how}")
        best, tries = _best(bed, how, rates, cycles)
        value = best.achieved if best is not None else None
        name = f"state changes per second before loss, 1 subscriber node, {how}: the best of {REPETITIONS} repetitions"
        findings.rows.append(at_least(name, value, "1/s", asked[how], PAPER_RATE))
        findings.rows.append(figure(f"repetitions until one of that rate lost nothing, {how}", float(tries), "1"))
        if best is not None:
            findings.tables.append(_reached(how, best))
    return findings


def _best(
    bed: LabMapNetwork, how: str, rates: Sequence[tuple[int, float]], cycles: int
) -> tuple[Drive | None, int]:  # fmt: skip
    """The first of these rates that lost nothing, and in which repetition."""
    for n, period_s in rates:
        for repetition in range(REPETITIONS):
            tried = bed.drive(Setting(n, period_s, batch=how == "in batches"), cycles)
            if tried.lost == 0 and tried.wrong == 0:
                return tried, repetition + 1
    return None, REPETITIONS


def _reached(how: str, drive: Drive) -> Table:
    """Table 1's last figure: the latency immediately before loss appears."""
    rows = [[f"{drive.achieved:.3g}", *(_cell(drive.mean(what)) for what in _SHOWN)]]
    return Table(f"At the greatest rate without loss, {how} (us)", ("changes/s", *_SHOWN.values()), rows)


def latency_floor(bed: LabMapNetwork, quick: bool, steps: Steps) -> tuple[Findings, list[Drive]]:
    """a of T = a + b n/dt over runs that lost nothing, with a heads-up before each packet and without. Beside it one
    variable by itself, and what a bare datagram takes between the same nodes, on the same cores, with the same
    pauses."""
    steps.expect(sum(len(kind.fitted) + len(kind.alone) for kind in KINDS.values()) + len(BARE))
    drives: dict[str, list[Drive]] = {}
    alone: dict[str, list[Drive]] = {}
    bare: list[Row] = []
    with affinity.awake() as is_awake:
        for how, kind in KINDS.items():
            for to, cells in ((drives, kind.fitted), (alone, kind.alone)):
                to[how] = []
                for n, period_s in cells:
                    steps.step(f"latency of {n} variables every {1e3 * period_s:g} ms, {how}")
                    cycles = min(max(12, round((0.6 if quick else 3.0) / period_s)), 1000 if quick else 5000)
                    to[how].append(bed.drive(Setting(n, period_s), cycles, kind.observer, kind.heads_up))
        for pause_s, poll in BARE:
            waiting = "polling" if poll else "blocking"
            steps.step(f"latency of a bare datagram every {1e3 * pause_s:g} ms, {waiting}")
            name = f"a bare datagram between two Python processes there, half a round trip, median, {waiting}"
            value = _bare_us(bed, pause_s, round((0.6 if quick else 4.0) / pause_s), poll)
            bare.append(figure(f"{name}, every {1e3 * pause_s:g} ms", value, "us"))
    name = "latency floor a of T = a + b n/dt, one hop, with heads-ups, median, least squares over runs without loss"
    rows = [
        at_most(name, _floor_us(drives[WITH]), "us", 50.0, PAPER_FLOOR_US),
        figure("the same without heads-ups", _floor_us(drives[WITHOUT]), "us", PAPER_FLOOR_US),
        *(
            figure(f"one variable every {1e3 * drive.setting.period_s:g} ms, {how}: median", drive.mean("p50_us"), "us")
            for how in KINDS
            for drive in (*(one for one in drives[how] if one.setting.n == 1), *alone[how])
        ),
        *bare,
    ]
    heads = ("n", "period (ms)", *_SHOWN.values())
    tables = [
        Table(
            f"Latency, one subscriber node, idle, {how} (us)", heads,
            [_shown(drive) for drive in (*drives[how], *alone[how])],
        )
        for how in KINDS
    ]  # fmt: skip
    kept = "kept from sleeping" if is_awake else "not kept from sleeping: the system does not let us"
    note = f"latency floor: idle cores were {kept} (/dev/cpu_dma_latency)"
    return Findings(rows=rows, tables=tables, notes=[note]), drives[WITH]


def _floor_us(drives: Sequence[Drive]) -> float | None:
    good = [drive for drive in drives if drive.lost == 0 and drive.mean("p50_us") is not None]
    return line(good)[0] if len(good) > 2 else None


def _shown(drive: Drive) -> list[str]:
    cells = (_cell(drive.mean(what)) for what in _SHOWN)
    return [f"{drive.setting.n}", f"{1e3 * drive.setting.period_s:g}", *cells]


def _bare_us(bed: LabMapNetwork, pause_s: float, count: int, poll: bool) -> float:
    node = bed.there(1)[0]
    host = bed.mesh.bed.node(node).address()
    echo, ping = bed.process(node), bed.process(bed.here)
    port = echo.ask("open", end="udp echo", name="bare", host=host, poll=poll)
    try:
        ping.ask("open", end="udp ping", name="bare", host=host, port=port)
        taken = ping.ask("ping", 60.0, name="bare", count=count, size=64, pause_s=pause_s, poll=poll)
        ping.ask("close", name="bare")
    finally:
        echo.ask("close", name="bare")
    return float(np.median(taken) / 2e3)


_SHOWN = {
    "p50_us": "median", "mean_us": "mean", "most_us": "greatest", "deviation_us": "jitter: deviation",
    "period_jitter_us": "jitter: period to period", "change_to_send_us": "change to send (t2 - t1)",
    "send_to_kernel_us": "to kernel (t3 - t2)", "kernel_to_mirror_us": "to mirror (t4 - t3)",
    "mirror_to_hand_us": "to hand (t5 - t4)",
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


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
