"""The shell scripts that set up a node and its wires: addresses, routes, rates, losses, cuts.

Packets on a wire are packets: segmentation is left to the sender (`gso_max_segs 1`, which holds for TCP and UDP alike
and needs no ethtool). Otherwise an injected loss would drop up to 64 KiB at once. A topology may ask for the contrary
(`offload`). Packets are dropped where they arrive, because a filter on the sending side would tell the sender. Rates
are set where packets leave. Multicast leaves by a node's first wire and stays in its segment: no router forwards it.

Builds text only; `network` runs it.
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Sequence
from pathlib import Path

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.topology import Family, Kind, Loss, Plan, Port, bits_per_second

FAMILIES: tuple[Family, ...] = (4, 6) if Path("/proc/net/if_inet6").exists() else (4,)
FILTER_OF: dict[Family, str] = {4: "iptables", 6: "ip6tables"}
FILTERS = [FILTER_OF[family] for family in FAMILIES]

# One Ethernet frame, or one millisecond at rates where a timer for each frame would be too coarse.
_BURST_BYTES, _BURST_S = 1600, 0.001
# As a switch's port: what arrives in 50 ms, and never less than two of the largest messages that are sent in one go.
_QUEUE_BYTES, _QUEUE_S = 128 * 1024, 0.05

PATTERN = 997
"""Packets after which losses by a pattern begin again from the first. A prime number, so that blocks of a code do not
begin at the same place each time."""
_LOST = "0x1057"

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


def namespaces_and_wires(plan: Plan, run: str) -> str:
    """Makes all namespaces, and all wires between them."""
    lines = [f"netns add {cleanup.namespace(run, name)}" for name in plan.kinds]
    # Numbers of their own, because the kernel takes up to a second to notice the carrier of a veth whose ends have
    # the same one (they count from 2 in each namespace): it thinks that it waits for a cable.
    numbers = itertools.count(100)
    segments = "" if plan.topology.offload else " gso_max_segs 1"
    for wire in plan.wires:
        one, other = (
            f"name to-{peer} index {next(numbers)} netns {cleanup.namespace(run, name)}{segments}"
            for name, peer in (wire.between, wire.between[::-1])
        )
        lines.append(f"link add {one} type veth peer {other}")
    return _batch("ip", lines)


def node_script(plan: Plan, name: str) -> str:
    """Sets up one node inside its namespace, and waits until its wires carry packets."""
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
        lines += rate_lines(port, port.wire.rate) if port.wire.rate else []
        lines += loss_lines(port, kind, Loss.parse(port.wire.loss)) if port.wire.loss else []
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


def rate_lines(port: Port, rate: str | None) -> list[str]:
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


def loss_lines(port: Port, kind: Kind, loss: Loss, senders: Sequence[str] = ()) -> list[str]:
    """Of what each of these `senders` (IPv4 addresses) sends, just that share is lost, and the same packets of each:
    the first, say, and the twentieth. Whatever else arrives loses as many on average. `every` counts all together."""
    senders = () if loss.every else senders
    name, jump = port.interface, f"PREROUTING {_arriving_at(port, kind)} -j {port.interface}"
    lines = []
    for family in FAMILIES:
        command = FILTER_OF[family]
        table = f"{command} -w -t mangle"
        if loss == Loss():
            own = f"{table} -S | sed -n 's/^-N \\({name}_[0-9]*\\)$/\\1/p'"
            lines += [
                f"{table} -D {jump} 2>/dev/null && {table} -F {name} && {table} -X {name} || :",
                f"for chain in $({own}); do {table} -F $chain; {table} -X $chain; done",
            ]
            continue
        chains = _chains(name, loss, f"{port.node} {name}", senders if family == 4 else ())
        text = ["*mangle", *(f":{chain} - [0:0]" for chain in chains)]
        text += [f"-A {chain} {rule}" for chain, rules in chains.items() for rule in rules]
        # All at once: a program for each rule would take seconds.
        lines.append(f"{command}-restore -w --noflush <<'END'\n" + "\n".join([*text, "COMMIT", "END"]))
        lines.append(f"{table} -C {jump} 2>/dev/null || {table} -A {jump}")
    return lines + _let_switch_filter(kind)


def _chains(name: str, loss: Loss, where: str, senders: Sequence[str]) -> dict[str, list[str]]:
    """Rules that drop, by chain; the first one is for all that arrives."""
    marks = _marks(burst_pattern(loss, seed=zlib.crc32(where.encode()))) if loss.burst > 1 or senders else []
    chains: dict[str, list[str]] = {name: []}
    for at, sender in enumerate(senders):
        own = f"{name}_{at}"  # no name of a node has that
        chains[name].append(f"-s {sender} -j {own}")
        chains[own] = [*marks, f"-m mark --mark {_LOST} -j RETURN", "-j ACCEPT"]
    lost = f"-m mark --mark {_LOST} -j DROP"
    if loss.burst > 1:
        chains[name] += [*([lost] if senders else []), *marks, lost]
    elif loss.every:
        chains[name].append(f"-m statistic --mode nth --every {loss.every} --packet {loss.every - 1} -j DROP")
    else:
        chains[name] += [lost] if senders else []
        chains[name].append(f"-m statistic --mode random --probability {loss.probability:.9f} -j DROP")
    return chains


def burst_pattern(loss: Loss, seed: int) -> list[int]:
    """Which of PATTERN packets are lost: exactly that share, in rows whose lengths are drawn as the simulator's are
    (Gilbert-Elliott: a row ends with a probability of 1 / burst), with gaps of any length between them. Without bursts
    each is lost whatever the one before was. Pure."""
    chance = random.Random(seed)
    left = round(PATTERN * loss.probability)
    if loss.burst == 1:
        return sorted(chance.sample(range(PATTERN), left))
    rows: list[int] = []
    while left:
        length = 1
        while length < left and chance.random() >= 1 / loss.burst:
            length += 1
        rows.append(length)
        left -= length
    # A row is followed by one packet that comes, at least.
    gaps = sorted(chance.sample(range(PATTERN - sum(rows)), len(rows)))
    lost: list[int] = []
    before = 0
    for gap, length in zip(gaps, rows, strict=True):
        first = gap + before
        lost += range(first, first + length)
        before += length
    return lost


def _marks(lost: Sequence[int]) -> list[str]:
    """The kernel's filter cannot remember that a row has begun, but it counts: a rule for every packet of a pattern
    that is lost, which comes again and again. They mark, because a rule counts only what those before it let pass."""
    return [f"-m statistic --mode nth --every {PATTERN} --packet {at} -j MARK --set-mark {_LOST}" for at in lost]


def cut_lines(port: Port, kind: Kind, cut: bool) -> list[str]:
    rule = f"PREROUTING {_arriving_at(port, kind)} -j DROP"
    tables = [f"{command} -w -t mangle" for command in FILTERS]
    if cut:
        return [f"{t} -C {rule} 2>/dev/null || {t} -I {rule}" for t in tables] + _let_switch_filter(kind)
    return [f"! {t} -C {rule} 2>/dev/null || {t} -D {rule}" for t in tables]


def _arriving_at(port: Port, kind: Kind) -> str:
    return f"-m physdev --physdev-in {port.interface}" if kind == "switch" else f"-i {port.interface}"


def _let_switch_filter(kind: Kind) -> list[str]:
    """A bridge passes packets to iptables only when this is switched on."""
    if kind != "switch":
        return []
    needs = "packets can be dropped at a switch only with the kernel module br_netfilter (try 'modprobe br_netfilter')"
    lines = [f'[ -e /proc/sys/net/bridge ] || {{ echo "{needs}" >&2; exit 1; }}']
    return lines + [f"echo 1 > /proc/sys/net/bridge/bridge-nf-call-{name}" for name in FILTERS]


def _batch(command: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{command} -batch - <<'END'", *lines, "END"])
