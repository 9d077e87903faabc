"""What does a recovery stage cost a receiver per packet, and does it allocate?

Builds `recovery_bench` (native/bench) if need be and shows what it prints. The stages run alone on one thread: no
socket, no peers. Nanoseconds are of this machine, now; allocations must be 0 anywhere.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"


def build() -> Path:
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or "cmake"
    configure = [cmake, "-S", str(ROOT), "-B", str(BUILD), "-DCMAKE_BUILD_TYPE=Release", "-DRINGCAST_TESTS=ON"]
    for command in (configure, [cmake, "--build", str(BUILD), "--target", "recovery_bench", "--parallel", "2"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return BUILD / "recovery_bench"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer packets")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    args = parser.parse_args()
    packets = 50_000 if args.quick else 1_000_000
    printed = subprocess.run([build(), str(packets)], check=True, capture_output=True, text=True).stdout
    rows = []
    for line in map(json.loads, printed.splitlines()):
        name = f"{line['stages'].replace(' ', '+') or 'no stage'}, {line['payload_bytes']} bytes"
        empty = {"reference": None, "target": None, "met": None}
        rows.append({"name": f"recovery, per packet: {name}", "value": line["ns"], "unit": "ns", **empty})
        found = line["allocations"]
        rows.append(
            {"name": f"allocations of {packets} packets: {name}", "value": found, "unit": "allocations",
             "reference": None, "target": 0, "met": found == 0}
        )  # fmt: skip
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['value']:>10}  {row['unit']:<12}{row['name']}")
    return 0 if all(row["met"] is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
