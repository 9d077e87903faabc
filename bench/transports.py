"""What does surviving loss cost when nothing is lost? And what does one more node cost a publisher that multicasts?

Two daemons on this machine and a round trip of 64 bytes through both, by each transport in turn, over and over in
changing order; then the same with a third that receives everything too, so that there are peers to send repairs to (and
three daemons share this machine's cores). The figure is each one's median against udp's. Then a publisher under strace,
with 1 and with 8 receiving nodes: its system calls per message, and datagrams per message on the wire of a network of
its own. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ringcast

TRANSPORTS = ("udp", "nak", "lateral", "parity", "multicast", "multicast+nak", "ack", "tcp")
WARM_UP = 200
PONG = """
import sys, ringcast
session = ringcast.connect(socket=sys.argv[1], start=False)
with session:
    ears = [session.subscribe(f"ping/{name}", transport=name) for name in sys.argv[2:]]
    mouths = {name: session.publisher(f"pong/{name}") for name in sys.argv[2:]}
    print("ready", flush=True)
    for line in sys.stdin:
        number, count = map(int, line.split())
        ear, mouth = ears[number], mouths[sys.argv[2 + number]]
        for _ in range(count):
            mouth.send(ear.recv(timeout=30).data)
"""
PUBLISHER = """
import sys, ringcast
session = ringcast.connect(socket=sys.argv[1], start=False)
pub = session.publisher("out")
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        pub.send(bytes(64))
    print("sent", flush=True)
"""


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextlib.contextmanager
def mesh(folder: Path, count: int) -> Iterator[list[str]]:
    """Paths of the sockets of daemons that know each other."""
    addresses = [free_address() for _ in range(count)]
    paths = [str(folder / f"d{i}.sock") for i in range(count)]
    with contextlib.ExitStack() as stack:
        for i in range(count):
            peers = [word for other in addresses if other != addresses[i] for word in ("--peer", other)]
            command = [sys.executable, "-m", "ringcast", "daemon", "--socket", paths[i], "--name", f"n{i}"]
            daemon = subprocess.Popen([*command, "--listen", addresses[i], "--no-scout", *peers])
            stack.callback(daemon.wait)
            stack.callback(daemon.terminate)
        for path in paths:
            until(lambda path=path: Path(path).exists() and nodes_seen(path) == count)
        yield paths


def nodes_seen(path: str) -> int:
    try:
        with ringcast.connect(socket=path, start=False) as session:
            return sum(node.state == "here" for node in session.nodes())
    except ringcast.RingcastError:
        return 0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the mesh does not come together")
        time.sleep(0.02)


def round_trips(folder: Path, rounds: int, count: int, *, peers: bool) -> dict[str, dict[str, float]]:
    """In microseconds; the median of the rounds' medians, and of their ratios to udp's of the same round."""
    medians: dict[str, list[float]] = {name: [] for name in TRANSPORTS}
    kept = []
    with (
        mesh(folder, 3 if peers else 2) as (here, there, *beside),
        ringcast.connect(socket=here, start=False) as session,
        ringcast.connect(socket=[*beside, here][0], start=False) as bystander,
    ):
        mouths = {name: session.publisher(f"ping/{name}") for name in TRANSPORTS}
        with ringcast.connect(socket=there, start=False) as other:
            until(lambda: all(any(t.publishers for t in other.tags(f"ping/{name}")) for name in TRANSPORTS))
        pong = subprocess.Popen(
            [sys.executable, "-c", PONG, there, *TRANSPORTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert pong.stdin
        assert pong.stdout
        pong.stdout.readline()
        until(lambda: all(any(t.publishers for t in session.tags(f"pong/{name}")) for name in TRANSPORTS))
        ears = {name: session.subscribe(f"pong/{name}", transport=name) for name in TRANSPORTS}
        for name in TRANSPORTS if peers else ():
            for tag in (f"ping/{name}", f"pong/{name}"):
                until(lambda tag=tag: any(t.publishers for t in bystander.tags(tag)))
                kept.append(bystander.subscribe(tag, transport=name))
        rng = random.Random(7)
        for turn in range(rounds):
            order = list(TRANSPORTS)
            rng.shuffle(order)
            for name in order:
                pong.stdin.write(f"{TRANSPORTS.index(name)} {count + WARM_UP}\n")
                pong.stdin.flush()
                taken = []
                for _ in range(count + WARM_UP):
                    begun = time.perf_counter_ns()
                    mouths[name].send(bytes(64))
                    ears[name].recv(timeout=30)
                    taken.append(time.perf_counter_ns() - begun)
                medians[name].append(statistics.median(taken[WARM_UP:]) / 1000)
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
        pong.stdin.close()
        pong.wait()
    return {
        name: {
            "p50_us": round(statistics.median(found), 1),
            "against_udp": round(statistics.median(a / b for a, b in zip(found, medians["udp"], strict=True)), 3),
        }
        for name, found in medians.items()
    }


def multicast_datagrams() -> int:
    """Sent from this network so far."""
    lines = [line.split() for line in Path("/proc/net/netstat").read_text().splitlines() if line.startswith("IpExt:")]
    return int(dict(zip(*lines, strict=True))["OutMcastPkts"])


def fan_out(folder: Path, receivers: int, messages: int) -> dict[str, float]:
    """Of a publisher by plain multicast, per message. Call it in a network namespace of its own."""
    with mesh(folder, receivers + 1) as (here, *others):
        trace = folder / "trace"
        publisher = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=network", sys.executable, "-c", PUBLISHER, here],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert publisher.stdin
        assert publisher.stdout
        publisher.stdout.readline()
        with contextlib.ExitStack() as stack:
            subs = []
            for path in others:
                session = stack.enter_context(ringcast.connect(socket=path, start=False))
                until(lambda session=session: any(t.publishers for t in session.tags("out")))
                subs.append(session.subscribe("out", transport="multicast"))

            def send(count: int) -> None:
                publisher.stdin.write(f"{count}\n")
                publisher.stdin.flush()
                publisher.stdout.readline()
                for sub in subs:
                    for _ in range(count):
                        sub.recv(timeout=30)

            send(10)  # the publisher has seen its links
            calls, packets = _sends(trace), multicast_datagrams()
            send(messages)
            calls, packets = _sends(trace) - calls, multicast_datagrams() - packets
        publisher.stdin.close()
        publisher.wait()
    return {"receivers": receivers, "system_calls": calls / messages, "datagrams": round(packets / messages, 2)}


def _sends(trace: Path) -> int:
    return sum("send" in line.split("(", 1)[0] for line in trace.read_text().splitlines() if "AF_UNIX" not in line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fan-out", type=int, metavar="N", help="only that, with N receivers, in this network")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as name:
        if args.fan_out:
            print(json.dumps(fan_out(Path(name), args.fan_out, 200)))
            return 0
        found: dict[str, object] = {}
        for peers in (False, True):
            folder = Path(name) / f"{peers}"
            folder.mkdir()
            title = "round_trip_with_a_peer" if peers else "round_trip"
            found[title] = round_trips(folder, 7 if args.quick else 31, 400, peers=peers)
    if shutil.which("strace") and shutil.which("unshare"):
        found["multicast"] = [_alone(receivers) for receivers in (1, 8)]
    print(json.dumps(found, indent=2))
    return 0


def _alone(receivers: int) -> object:
    """The same in a network namespace of its own, where nobody else's datagrams are counted."""
    command = f"ip link set lo up && exec {sys.executable} {__file__} --fan-out {receivers}"
    made = subprocess.run(["unshare", "-n", "sh", "-c", command], capture_output=True, text=True, check=False)
    return json.loads(made.stdout) if made.returncode == 0 else {"failed": made.stderr[-500:]}


if __name__ == "__main__":
    sys.exit(main())
