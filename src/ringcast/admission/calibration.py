"""What stages take on a machine, as it was measured there, and on which machine that was. Pure but for its file.

A calibration of another machine, or of another version of it, is not used: costs are measured, not assumed.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ringcast.admission.model import AdmissionError, Costs, Node

FILE = "calibration.json"


class Machine(msgspec.Struct, frozen=True):
    """What must be the same for a calibration to hold."""

    processor: str
    cores: int
    kernel: str
    version: str
    """Of Ringcast."""


class Calibration(msgspec.Struct, frozen=True):
    """`realtime`: measured by threads with real-time priority. The times are those of a node."""

    machine: Machine
    costs: Costs
    blocking_s: float
    measured_at: str
    realtime: bool
    preemption_s: float = 0.0
    waking_s: float = 0.0

    def node(self, name: str, cores: int) -> Node:
        """One on which this was measured, or that is taken to be like it."""
        return Node(
            name=name, cores=cores, blocking_s=self.blocking_s, preemption_s=self.preemption_s, waking_s=self.waking_s
        )


def this_machine(version: str) -> Machine:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith(("model name", "cpu part"))]
    return Machine(names[0] if names else os.uname().machine, len(os.sched_getaffinity(0)), os.uname().release, version)


def default_path() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "ringcast" / FILE


def load(path: Path, machine: Machine) -> Calibration:
    """Raises AdmissionError when there is none of this machine."""
    calibrate = "run 'ringcast admit --calibrate'"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    except FileNotFoundError as exc:
        raise AdmissionError("costs", f"this machine has not been calibrated; {calibrate}, or write 'costs'") from exc
    except (OSError, msgspec.MsgspecError) as exc:
        raise AdmissionError(str(path), f"the calibration cannot be read ({exc}); {calibrate}") from exc
    if found.machine != machine:
        raise AdmissionError(
            "costs", f"the calibration in {path} is of another machine or version ({found.machine}); {calibrate}"
        )
    return found


def save(path: Path, found: Calibration) -> None:
    """Whole or not at all. Raises AdmissionError."""
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
        beside.replace(path)
    except OSError as exc:
        raise AdmissionError(str(path), f"the calibration cannot be written: {exc.strerror}") from exc
