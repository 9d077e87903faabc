"""A network on this machine: every node a network namespace, every wire a veth pair, real routers and bridges.

    with Testbed(chain(3, rate="10mbit")) as bed:
        bed.node("a").run(["ping", "-c1", bed.node("c").address()])
        bed.link("a", "b").set_loss("3%")

Built with the `ip`, `tc` and `iptables` commands rather than pyroute2: loss needs iptables anyway and commands in a
node need `ip netns exec`, so it would be one more dependency and not one less; one script per node, all nodes at once,
is fast; and whatever is done here can be looked at and repeated by hand.

Packets on a wire are packets: segmentation is left to the sender (`gso_max_segs 1`, which holds for TCP and UDP alike
and needs no ethtool), or an injected loss would drop up to 64 KiB at once; a topology may ask for the contrary
(`offload`). Packets are lost where they arrive, for a
filter on the sending side would tell the sender; rates are set where they leave. Multicast leaves by a node's first
wire and stays in its segment: no router forwards it.

Invariant: the machine's own network is never touched, for both ends of each veth are born inside namespaces; all that
exists was recorded first (`cleanup`), and leaving the `with` block removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import secrets
import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.cleanup import LabError, LabUnavailable, tool
from ringcast.lab.testbed.topology import Family, Kind, Loss, Plan, Port, Topology, TopologyError, bits_per_second

_CLONE_NEWNET = 0x40000000
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
FAMILIES: tuple[Family, ...] = (4, 6) if Path("/proc/net/if_inet6").exists() else (4,)
_FILTER_OF: dict[Family, str] = {4: "iptables", 6: "ip6tables"}
_FILTERS = [_FILTER_OF[family] for family in FAMILIES]

# One Ethernet frame, or one millisecond at rates where a timer for each frame would be too coarse.
_BURST_BYTES, _BURST_S = 1600, 0.001
# As a switch's port: what arrives in 50 ms, and never less than two of the largest messages that are sent in one go.
_QUEUE_BYTES, _QUEUE_S = 128 * 1024, 0.05

# Some kernels refuse the first two inside a namespace: there the machine's own limits hold.
_SETTINGS = {
    "net/core/rmem_max": "33554432",
    "net/core/wmem_max": "33554432",
    "net/ipv4/tcp_rmem": "4096 131072 33554432",
    "net/ipv4/tcp_wmem": "4096 65536 33554432",
    "net/ipv4/igmp_max_memberships": "1024",
    "net/ipv4/icmp_ratelimit": "0",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv6/conf/all/disable_ipv6": "0",
    "net/bridge/bridge-nf-call-iptables": "0",
    "net/bridge/bridge-nf-call-ip6tables": "0",
}
# Addresses work at once: no search for duplicates, no router discovery.
_PORT_SETTINGS = {
    "net/ipv4/conf/$port/rp_filter": "0",
    "net/ipv4/conf/$port/arp_announce": "2",
    "net/ipv6/conf/$port/accept_dad": "0",
    "net/ipv6/conf/$port/accept_ra": "0",
    "net/ipv6/conf/$port/router_solicitations": "0",
}


class CommandFailed(LabError):
    """A command in a node ended with another code than 0."""

    def __init__(self, node: str, args: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        self.node, self.command, self.returncode, self.stdout, self.stderr = node, args, returncode, stdout, stderr
        said = (stderr or stdout or "").strip() or "it said nothing"
        super().__init__(f"'{shlex.join(args)}' on node {node!r} ended with {returncode}: {said}")


def unavailable() -> str | None:
    """Why there can be no testbed here, in one sentence; None when there can."""
    status = Path("/proc/self/status").read_text()
    held = int(re.findall(r"^CapEff:\s*(\w+)", status, re.MULTILINE)[0], 16)
    if missing := [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]:
        return (
            f"network namespaces need root ({' and '.join(missing)} missing): use sudo, or 'ringcast up --nodes 3', "
            "which runs several daemons on loopback addresses without it"
        )
    try:
        for name in ("ip", "tc", *_FILTERS):
            tool(name)
    except LabUnavailable as exc:
        return str(exc)
    return None


class Testbed:
    """A network that exists while its `with` block runs. Entering raises LabUnavailable, LabError."""

    __test__ = False  # pytest takes every class called Test... for a test

    def __init__(self, topology: Topology, *, keep: bool = False, _run_id: str | None = None) -> None:
        """With `keep` it outlives block and process, until `ringcast lab net down`. Raises TopologyError."""
        self.plan = Plan(topology)
        self.run_id = _run_id or secrets.token_hex(4)
        self._keep = keep
        self._processes: list[subprocess.Popen[str]] = []
        self._sockets: list[socket.socket] = []

    @classmethod
    def attach(cls, record: cleanup.Record) -> Self:
        """A testbed that another process made: for its nodes and links. It need not be closed."""
        return cls(record.topology, keep=True, _run_id=record.run)

    def __enter__(self) -> Self:
        if reason := unavailable():
            raise LabUnavailable(reason)
        cleanup.sweep()
        try:
            with cleanup.undisturbed():
                cleanup.write(cleanup.Record.mine(self.run_id, self.plan.topology, self._keep))
                self._build()
        except BaseException:
            cleanup.remove(self.run_id)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or not self._keep:
            self.close()

    def close(self) -> None:
        """End what runs in the nodes and remove everything; may be called again. Raises LabError."""
        try:
            cleanup.remove(self.run_id)
        finally:
            for process in self._processes:
                process.kill()  # only one that had not reached its namespace still lives
                process.wait()
                for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            # An open socket would keep its namespace, nameless, in existence.
            for opened in self._sockets:
                opened.close()

    @property
    def nodes(self) -> list[Node]:
        """Hosts and routers."""
        return [Node(self, name) for name in self.plan.machines]

    @property
    def links(self) -> list[Link]:
        return [self.link(*wire.between) for wire in self.plan.wires]

    def node(self, name: str) -> Node:
        """Raises TopologyError."""
        return Node(self, self.plan.port(name).node)

    def link(self, one: str, other: str) -> Link:
        """Raises TopologyError."""
        return Link(self, self.plan.port(one, other), self.plan.port(other, one))

    def _build(self) -> None:
        lines = [f"netns add {cleanup.namespace(self.run_id, name)}" for name in self.plan.kinds]
        # Numbers of their own, because the kernel takes up to a second to notice the carrier of a veth whose ends have
        # the same one (they count from 2 in each namespace): it thinks that it waits for a cable.
        numbers = itertools.count(100)
        segments = "" if self.plan.topology.offload else " gso_max_segs 1"
        for wire in self.plan.wires:
            one, other = (
                f"name to-{peer} index {next(numbers)} netns {cleanup.namespace(self.run_id, name)}{segments}"
                for name, peer in (wire.between, wire.between[::-1])
            )
            lines.append(f"link add {one} type veth peer {other}")
        _all_at_once([["sh", "-c", _batch("ip", lines)]], "cannot make the namespaces")
        self._script({name: _node_script(self.plan, name) for name in self.plan.kinds}, "cannot set up the nodes")

    def _script(self, scripts: Mapping[str, str], problem: str) -> list[str]:
        """Run a shell script in each of these nodes, all at once; returns what they print. Raises LabError."""
        commands = [[*Node(self, name).command, "sh", "-ec", text] for name, text in scripts.items()]
        return _all_at_once(commands, problem)


class Node:
    """A machine of a testbed. Commands on it see its network only, and files and processes of the whole machine."""

    def __init__(self, bed: Testbed, name: str) -> None:
        self._bed = bed
        self.name = name
        self.kind: Kind = bed.plan.kinds[name]
        self.namespace = cleanup.namespace(bed.run_id, name)
        # Without a socket of its own, a daemon on one node would find the daemon of another.
        self.environment = {
            "RINGCAST_SOCKET": str(cleanup.STATE / bed.run_id / f"{name}.sock"),
            "RINGCAST_NODE": name,
        }

    @property
    def command(self) -> list[str]:
        """What to put before a command so that it runs here; it becomes the command, with the same process id."""
        return [tool("ip"), "netns", "exec", self.namespace]

    def address(self, family: Family = 4, toward: str | None = None) -> str:
        """The address others use for it, or that of its wire to a neighbour. Raises TopologyError."""
        return str(self._bed.plan.address(self.name, family, toward).ip)

    def run(self, args: Sequence[str], *, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """`subprocess.run` on this node, output captured as text. Raises CommandFailed, subprocess.TimeoutExpired."""
        done = subprocess.run([*self.command, *args], check=False, **self._options(options))
        if check and done.returncode:
            raise CommandFailed(self.name, args, done.returncode, done.stdout, done.stderr)
        return done

    def spawn(self, args: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """`subprocess.Popen` on this node, output piped as text, in a process group that Ctrl-C does not reach."""
        process = subprocess.Popen([*self.command, *args], **{"process_group": 0, **self._options(options)})
        self._bed._processes.append(process)
        return process

    def open_socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_DGRAM) -> socket.socket:
        """A socket of the calling process that lives in this node's network. Raises OSError."""

        def make() -> socket.socket:
            with open(cleanup.NAMESPACES / self.namespace) as there:
                if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"cannot enter {self.namespace}")
            return socket.socket(family, kind)

        # A namespace belongs to a thread, and this one ends with the call.
        with ThreadPoolExecutor(max_workers=1) as thread:
            opened = thread.submit(make).result()
        self._bed._sockets.append(opened)
        return opened

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        environment = {**(options.pop("env", None) or os.environ), **self.environment}
        return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options, "env": environment}


class Link:
    """A wire of a testbed, to be made worse and better while it is used. `to` limits a change to one direction.

    Every method raises LabError, and TopologyError for a `to` that is not one of its ends.
    """

    def __init__(self, bed: Testbed, one: Port, other: Port) -> None:
        self._bed = bed
        self.wire = one.wire
        self._ports = (one, other)

    def cut(self) -> None:
        """Nothing that is sent arrives any more, and nobody is told."""
        self._change("cut", {port.node: _cut_lines(port, self._kind(port), cut=True) for port in self._ports})

    def restore(self) -> None:
        """Undo `cut`; rate and loss are what they were."""
        self._change("restore", {port.node: _cut_lines(port, self._kind(port), cut=False) for port in self._ports})

    def set_loss(self, loss: str | float | None, *, to: str | None = None) -> None:
        """`0.03`, `3%`, `every 100`; None or 0 for none."""
        wanted = Loss.parse(loss or 0)
        lines = {port.node: _loss_lines(port, self._kind(port), wanted) for port in self._arriving(to)}
        self._change("set the loss of", lines)

    def set_rate(self, rate: str | None, *, to: str | None = None) -> None:
        """`10mbit`; None for as fast as the machine."""
        lines = {port.peer: _rate_lines(self._other(port), rate) for port in self._arriving(to)}
        self._change("set the rate of", lines)

    def dropped(self, *, to: str | None = None, families: Sequence[Family] = FAMILIES) -> int:
        """How many packets of these families `set_loss` has dropped since it was set."""
        said = self._change(
            "read the counters of",
            {
                port.node: [f"{_FILTER_OF[f]} -w -t mangle -vnxL {port.interface} 2>/dev/null || :" for f in families]
                for port in self._arriving(to)
            },
        )
        return sum(int(count) for text in said for count in re.findall(r"^\s*(\d+)\s+\d+\s+DROP\b", text, re.MULTILINE))

    def _arriving(self, to: str | None) -> list[Port]:
        if to not in (None, *self.wire.between):
            raise TopologyError(f"{to!r} is not an end of the link {self.wire}")
        return [port for port in self._ports if to in (None, port.node)]

    def _other(self, port: Port) -> Port:
        return self._ports[1] if port == self._ports[0] else self._ports[0]

    def _kind(self, port: Port) -> Kind:
        return self._bed.plan.kinds[port.node]

    def _change(self, what: str, lines: Mapping[str, list[str]]) -> list[str]:
        scripts = {node: "\n".join(text) for node, text in lines.items()}
        with cleanup.undisturbed():
            return self._bed._script(scripts, f"cannot {what} the link {self.wire}")


def _node_script(plan: Plan, name: str) -> str:
    ports, kind = plan.ports[name], plan.kinds[name]
    setup = ["link set dev lo up"]
    if kind == "switch":
        # Snooping would need a querier; a switch that floods carries all multicast to all.
        setup += ["link add name bridge type bridge mcast_snooping 0", "link set dev bridge up"]
    for port in ports:
        if kind == "switch":
            setup.append(f"link set dev {port.interface} master bridge")
        for family in FAMILIES if port.addresses else ():
            # The routes are all ours, because the kernel's own would not send from the primary address.
            flags = "noprefixroute nodad" if family == 6 else "noprefixroute"
            setup.append(f"address add {port.addresses[family]} dev {port.interface} {flags}")
        setup.append(f"link set dev {port.interface} up")
    lines = [
        'try() { { echo "$2" > "/proc/sys/$1"; } 2>/dev/null || :; }',
        *(f"try {path} '{value}'" for path, value in _SETTINGS.items()),
        f"for port in {' '.join(port.interface for port in ports)}; do",
        *(f"try {path} {value}" for path, value in _PORT_SETTINGS.items()),
        "done",
    ]
    if kind == "router":
        lines += ["echo 1 > /proc/sys/net/ipv4/ip_forward", "try net/ipv6/conf/all/forwarding 1"]
    lines.append(_batch("ip", setup + (_route_lines(plan, name) if kind != "switch" else [])))
    for port in ports:
        lines += _rate_lines(port, port.wire.rate) if port.wire.rate else []
        lines += _loss_lines(port, kind, Loss.parse(port.wire.loss)) if port.wire.loss else []
        # The kernel notices carriers a moment later, and until then drops what is sent.
        lines.append(
            f"tries=0; until read state < /sys/class/net/{port.interface}/operstate && [ $state = up ]; do "
            f"tries=$((tries + 1)); [ $tries -lt 1000 ] || {{ echo {port.interface} stays $state >&2; exit 1; }}; "
            "sleep 0.005; done"
        )
    return "\n".join(lines)


def _route_lines(plan: Plan, name: str) -> list[str]:
    lines = []
    for family in FAMILIES:
        source = plan.address(name, family)
        for route in plan.routes[name]:
            via = f"via {route.gateway.addresses[family].ip} " if route.gateway else ""
            network = plan.network(route.segment, family)
            lines.append(f"route add {network} {via}dev {route.out.interface} src {source.ip}")
    first = plan.port(name).interface
    lines.append(f"route add 224.0.0.0/4 dev {first} src {plan.address(name).ip}")
    # Before the kernel's own (metric 256), of which each interface has one.
    return lines + [f"route add multicast ff00::/8 dev {first} table local metric 128"] * (6 in FAMILIES)


def _rate_lines(port: Port, rate: str | None) -> list[str]:
    if rate is None:
        return [f"tc qdisc delete dev {port.interface} root 2>/dev/null || :"]
    per_second = bits_per_second(rate) / 8
    burst = max(_BURST_BYTES, int(per_second * _BURST_S))
    queue = max(_QUEUE_BYTES, int(per_second * _QUEUE_S))
    if port.wire.shaper == "tbf":
        return [f"tc qdisc replace dev {port.interface} root tbf rate {rate} burst {burst} limit {burst + queue}"]
    # Its one class takes all; more can be added beside it, with filters, for priorities.
    shape = f"rate {rate} burst {burst} cburst {burst} quantum 1514"
    return [
        f"tc qdisc add dev {port.interface} root handle 1: htb default 10 2>/dev/null || :",
        f"tc class replace dev {port.interface} parent 1: classid 1:10 htb {shape}",
        f"tc qdisc replace dev {port.interface} parent 1:10 handle 10: bfifo limit {queue}",
    ]


def _loss_lines(port: Port, kind: Kind, loss: Loss) -> list[str]:
    name, jump = port.interface, f"PREROUTING {_arriving_at(port, kind)} -j {port.interface}"
    if loss.every:
        rule = f"-m statistic --mode nth --every {loss.every} --packet {loss.every - 1} -j DROP"
    else:
        rule = f"-m statistic --mode random --probability {loss.probability:.9f} -j DROP"
    lines = []
    for table in (f"{command} -w -t mangle" for command in _FILTERS):
        if loss == Loss():
            lines.append(f"{table} -D {jump} 2>/dev/null && {table} -F {name} && {table} -X {name} || :")
        else:
            lines.append(f"{table} -N {name} 2>/dev/null || {table} -F {name}")
            lines.append(f"{table} -A {name} {rule}")
            lines.append(f"{table} -C {jump} 2>/dev/null || {table} -A {jump}")
    return lines + _let_switch_filter(kind)


def _cut_lines(port: Port, kind: Kind, cut: bool) -> list[str]:
    rule = f"PREROUTING {_arriving_at(port, kind)} -j DROP"
    tables = [f"{command} -w -t mangle" for command in _FILTERS]
    if cut:
        return [f"{t} -C {rule} 2>/dev/null || {t} -I {rule}" for t in tables] + _let_switch_filter(kind)
    return [f"! {t} -C {rule} 2>/dev/null || {t} -D {rule}" for t in tables]


def _arriving_at(port: Port, kind: Kind) -> str:
    return f"-m physdev --physdev-in {port.interface}" if kind == "switch" else f"-i {port.interface}"


def _let_switch_filter(kind: Kind) -> list[str]:
    """A bridge shows packets to iptables only when told to."""
    if kind != "switch":
        return []
    needs = "packets can be dropped at a switch only with the kernel module br_netfilter (try 'modprobe br_netfilter')"
    lines = [f'[ -e /proc/sys/net/bridge ] || {{ echo "{needs}" >&2; exit 1; }}']
    return lines + [f"echo 1 > /proc/sys/net/bridge/bridge-nf-call-{name}" for name in _FILTERS]


def _batch(command: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{command} -batch - <<'END'", *lines, "END"])


def _all_at_once(commands: Sequence[Sequence[str]], problem: str) -> list[str]:
    """Run these, in process groups that Ctrl-C does not reach; returns what they print. Raises LabError."""
    environment = {**os.environ, "PATH": cleanup.SEARCH, "LC_ALL": "C"}
    running = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, process_group=0,
        )
        for command in commands
    ]  # fmt: skip
    said = [process.communicate() for process in running]
    if failed := [" ".join(said[at][1].split()) for at, process in enumerate(running) if process.returncode]:
        raise LabError(f"{problem}: {'; '.join(filter(None, failed)) or 'no reason given'}")
    return [output for output, _ in said]
