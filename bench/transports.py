"""What does surviving loss cost when nothing is lost? And what does one more node cost a publisher that multicasts?

Round trips of 64 bytes between two nodes by each transport in turn, over and over in changing order; then the same with
a third that receives everything too, so that there are peers to send repairs to (and three daemons share this machine's
cores). The figure is each one's median against udp's. Then a publisher under strace, with 1 and with 8 receiving nodes.
The measuring is `ringcast.lab.adamant.field`'s, in network namespaces, so it needs root. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import sys

from ringcast.lab.adamant.field import fan_out, round_trips
from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.measuring.samples import paired_ratio, pooled
from ringcast.lab.testbed.network import unavailable


class Said:
    """Steps, on standard error."""

    def expect(self, number: int) -> None: ...

    def step(self, what: str) -> None:
        print(what, file=sys.stderr)

    def rounds(self, wanted: int, least: int, most_s: float) -> range:
        return range(wanted)


def against_udp(rounds: int, *, bystander: bool) -> dict[str, dict[str, float]]:
    with FieldNetwork(2 if bystander else 1) as network:
        batches = round_trips.measure(network, round_trips.ALL, rounds, 400, Said(), bystander=bystander)
    return {
        name: {
            "p50_us": round(pooled(found).p50 / 1000, 1),
            "against_udp": round(paired_ratio(found, batches[round_trips.REFERENCE]), 3),
        }
        for name, found in batches.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if reason := unavailable():
        print(reason, file=sys.stderr)
        return 1
    rounds = 7 if args.quick else 31
    found: dict[str, object] = {
        "round_trip": against_udp(rounds, bystander=False),
        "round_trip_with_a_peer": against_udp(rounds, bystander=True),
    }
    if fan_out.available():
        with FieldNetwork(fan_out.MANY) as network:
            costs = fan_out.measure(network, Said())
        found["multicast"] = {nodes: cost._asdict() for nodes, cost in costs.items()}
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
