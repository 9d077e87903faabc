"""Who takes part: ours, from the interpreter that runs this, and every peer found in `peers/`, from `.venv-peers`.

A peer joins by adding a file to `peers/` and a line to `peers.txt`; there is no list of them here. A peer that cannot
be loaded is absent with a reason, never silently.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.process import BENCH, PeerFailed, Worker

OURS = "ringcast_"
PEERS_PYTHON = BENCH.parent / ".venv-peers" / "bin" / "python"
PROBE_S = 20.0


@dataclass(frozen=True)
class Contender:
    """One library, or one way of using it, as its adapter describes it."""

    name: str
    adapter: str
    python: Path
    version: str
    offers: frozenset[str]
    serves: bool
    leftovers: tuple[str, ...]

    @property
    def ours(self) -> bool:
        return self.adapter == OURS


@dataclass(frozen=True)
class Contenders:
    """The contenders, ours first, and why others are absent."""

    contenders: tuple[Contender, ...]
    absent: dict[str, str]


def adapters(wanted: frozenset[str]) -> list[str]:
    """The adapters' module names, ours first; `wanted` narrows the peers (empty: all).

    Raises:
        ValueError: `wanted` names no adapter.
    """
    found = sorted(path.stem for path in (BENCH / "peers").glob("*.py") if path.stem not in {"__init__", OURS})
    if unknown := wanted - set(found):
        raise ValueError(f"unknown peers: {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    return [OURS, *(name for name in found if not wanted or name in wanted)]


def assemble(names: list[str], folder: Path) -> Contenders:
    """Ask these adapters, all at once, what they are and can do."""
    contenders: list[Contender] = []
    absent: dict[str, str] = {}
    asked: list[tuple[str, Path, Worker]] = []
    with contextlib.ExitStack() as stack:
        for adapter in names:
            python = Path(sys.executable) if adapter == OURS else PEERS_PYTHON
            if not python.exists():
                absent[adapter] = "the peers' environment is missing; bench/setup_peers.sh makes it"
                continue
            asked.append((adapter, python, stack.enter_context(Worker(python, adapter, folder))))
        for adapter, python, worker in asked:
            try:
                described = worker.ask("describe", PROBE_S)
            except PeerFailed as exc:
                absent[adapter.rstrip("_")] = str(exc)
                continue
            for one in described:
                contenders.append(
                    Contender(
                        one["name"],
                        adapter,
                        python,
                        one["version"],
                        frozenset(one["offers"]),
                        one["serves"],
                        tuple(one["leftovers"]),
                    )
                )
    return Contenders(tuple(contenders), absent)
