"""Does a channel without a priority take as long as in another built tree of this project, as it was before a change?

Both trees are open at once, each with two daemons of its own, and take turns; what is judged is the median of the
ratios within pairs of turns, so what slows the machine down for a while slows both down.
`ringcast bench against --tree DIR`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from ringcast.lab.measuring.rows import Row, at_most, figure

MOST = 1.02
"""What a channel without priority may take now, in times what it took before (issue 14)."""
SIZE = 64
TRANSPORTS = ("nak", "udp", "tcp")
COUNT = 400
PAIRS, QUICK_PAIRS = 40, 6
PROGRAM = Path(__file__).parent / "channel.py"
ANSWER_S = 120.0


class Tree:
    """One tree's two nodes, by its own interpreter. Entering raises OSError, RuntimeError."""

    def __init__(self, name: str, python: Path, transport: str) -> None:
        self.name = name
        self._command = [str(python), str(PROGRAM), transport, str(SIZE)]

    def __enter__(self) -> Tree:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def turn(self, count: int) -> list[int]:
        """Nanoseconds of so many round trips."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        found: list[int] = json.loads(self._read())
        return found

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: its nodes ended; what they said stands above")
        return line


def interpreter(tree: Path) -> Path:
    """Of a built tree. Raises FileNotFoundError."""
    found = tree / ".venv" / "bin" / "python"
    if not found.exists():
        raise FileNotFoundError(f"{tree} is no built tree: there is no {found}; run 'make setup' in it")
    return found


def judged(transport: str, ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> list[Row]:
    """Of turns in pairs: the median of the ratios of their p50, and the quarters of those."""
    ratios = [median(one) / median(other) for one, other in zip(ours, theirs, strict=True) if one and other]
    value = median(ratios) if ratios else None
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (None, None, None)
    name = f"{transport}, {SIZE} bytes, no priority: p50 of a round trip"
    flat = [[ns for turn in turns for ns in turn] for turns in (ours, theirs)]
    here, there = (median(found) / 1e3 if found else None for found in flat)
    return [
        at_most(f"{name}, this tree by the other, median of pairs", value, "times", MOST),
        figure(f"{name}, this tree by the other, a quarter of the pairs below", low, "times"),
        figure(f"{name}, this tree by the other, a quarter of the pairs above", high, "times"),
        figure(f"{name}, this tree", here, "us", there),
    ]


def measure(tree: Path, pairs: int, transports: Sequence[str]) -> list[Row]:
    """Raises FileNotFoundError, OSError, RuntimeError."""
    rows = []
    other = interpreter(tree)
    for transport in transports:
        turns: dict[str, list[list[int]]] = {"this": [], "other": []}
        with ExitStack() as stack:
            both = [
                stack.enter_context(Tree("this", Path(sys.executable), transport)),
                stack.enter_context(Tree("other", other, transport)),
            ]
            for number in range(pairs):
                for one in both if number % 2 == 0 else reversed(both):
                    turns[one.name].append(one.turn(COUNT))
        rows += judged(transport, turns["this"], turns["other"])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, metavar="DIR", help="another built checkout")
    parser.add_argument("--quick", action="store_true", help="fewer pairs of turns, one transport")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    args = parser.parse_args()
    try:
        rows = measure(args.tree, QUICK_PAIRS if args.quick else PAIRS, TRANSPORTS[:1] if args.quick else TRANSPORTS)
    except (OSError, RuntimeError) as exc:
        print(f"ringcast bench against: {exc}", file=sys.stderr)
        return 1
    if args.json:
        fields = ("name", "value", "unit", "reference", "target", "met")
        print(json.dumps([{field: getattr(row, field) for field in fields} for row in rows], indent=1))
    else:
        for row in rows:
            beside = f" (the other: {row.reference})" if row.reference else ""
            print(f"{row.value!s:>10}  {row.unit:<8}{row.name}{beside}")
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
