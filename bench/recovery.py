"""What does a recovery stage cost a receiver per packet, and does it allocate?

The stages run alone on one thread: no socket, no peers (`ringcast.lab.adamant.recovery_bench`). Nanoseconds are of this
machine, now; allocations must be 0 anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys

from ringcast.lab.adamant import recovery_bench


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer packets")
    parser.add_argument("--json", action="store_true", help="print one list of rows")
    parser.add_argument("--peers", default="", help="taken for the other benchmarks' sake; there are none here")
    args = parser.parse_args()
    packets = recovery_bench.packets(args.quick)
    rows = recovery_bench.rows(recovery_bench.measure(packets), packets)
    if args.json:
        print(json.dumps([row.document() for row in rows], indent=1))
    else:
        for row in rows:
            print(f"{row.value:>10}  {row.unit:<12}{row.name}")
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
