"""A snapshot as Prometheus metrics. Names follow its conventions: `_total` only grows, units are seconds and bytes.

A label set is one channel, publisher or subscriber; `publisher` is its incarnation, so that one that is started again
begins a series of its own and no counter ever falls. What is not measured has no sample: an end that does not count
messages says nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.observe.exposition import Rows, label_text
from ringcast.daemon.observe.snapshot import Snapshot

_CHANNEL = ("direction", "node", "tag", "publisher", "transport", "every", "size")
_COUNTERS = {
    "recovered": ("recovered_messages", "Pieces that came out of repairs."),
    "naks": ("naks", "Requests for repairs: sent on the way in, answered on the way out."),
    "repairs": ("repairs", "Repairs that came (in) or were sent (out)."),
    "duplicates": ("duplicate_datagrams", "Datagrams that came twice."),
    "late": ("late_datagrams", "Datagrams that came too late to be used."),
    "forged": ("forged_datagrams", "Datagrams under the channel's key that cannot be its sender's."),
    "replayed": ("replayed_datagrams", "Sealed datagrams that had come before, or were too old to tell."),
    "old_key": ("old_key_datagrams", "Datagrams sealed with a key that is over, or that cannot have begun."),
}
"""{what the native end counts: (metric, help)}"""


def families(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    yield from _node(snapshot)
    yield from _refused(snapshot)
    yield from _mesh(snapshot)
    yield from _clocks(snapshot.clocks)
    yield from _publishers(snapshot)
    yield from _subscribers(snapshot)
    yield from _channels(snapshot.channels)


def _node(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    status = snapshot.status
    yield InfoMetricFamily(
        "ringcast_node", "This daemon.", {"node": status.node, "mesh": status.mesh, "version": status.version}
    )
    live = status.rings - status.lingering
    yield GaugeMetricFamily("ringcast_uptime_seconds", "How long the daemon has run.", status.uptime_s)
    yield GaugeMetricFamily("ringcast_clients", "Programs of this node that are connected.", status.clients)
    yield GaugeMetricFamily("ringcast_tags", "Tags that this node knows.", status.tags)
    rings = GaugeMetricFamily("ringcast_rings", "Rings on this node, mirrors included.", labels=("state",))
    rings.add_metric(("live",), live)
    rings.add_metric(("lingering",), status.lingering)
    yield rings
    yield GaugeMetricFamily("ringcast_ring_memory_bytes", "Memory that rings may come to occupy.", status.used_bytes)
    yield GaugeMetricFamily(
        "ringcast_ring_memory_limit_bytes", "Memory that rings may have at most.", status.budget_bytes
    )
    yield GaugeMetricFamily(
        "ringcast_snapshot_longest_slice_seconds", "How long this scrape held the daemon's loop up at most.",
        snapshot.longest_slice_s,
    )  # fmt: skip
    yield CounterMetricFamily("ringcast_bad_messages", "Packets of clients that were no message.", status.bad_messages)
    yield CounterMetricFamily(
        "ringcast_slow_clients", "Clients disconnected because they did not read.", status.slow_clients
    )


def _refused(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    refused = CounterMetricFamily(
        "ringcast_refused_actions", "What was refused to programs, nodes and strangers.", labels=("action",)
    )
    for action, count in snapshot.refused.items():
        refused.add_metric((action,), count)
    yield refused
    yield CounterMetricFamily(
        "ringcast_unrecorded_refusals", "Refusals that were counted and not written down.", snapshot.unrecorded
    )
    yield CounterMetricFamily(
        "ringcast_throttled_requests", "How often a program that asked too fast was left waiting.", snapshot.throttled
    )


def _mesh(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    nodes = GaugeMetricFamily("ringcast_nodes", "Nodes that this one knows, itself among them.", labels=("state",))
    for state in ("here", "suspect", "gone", "conflict"):
        nodes.add_metric((state,), snapshot.nodes.get(state, 0))
    yield nodes
    dropped = CounterMetricFamily(
        "ringcast_dropped_datagrams", "What came over the network and belongs to no channel.",
        labels=("transport", "reason"),
    )  # fmt: skip
    for transport, reasons in snapshot.dropped.items():
        for reason, count in reasons.items():
            dropped.add_metric((transport, reason), count)
    yield dropped
    mesh = snapshot.mesh
    if mesh is None:
        return
    yield GaugeMetricFamily("ringcast_mesh_links", "Nodes that this one is linked with.", mesh.links)
    yield GaugeMetricFamily(
        "ringcast_mesh_serving", "0 while another daemon has this node's name.", float(mesh.serving)
    )
    refused = CounterMetricFamily(
        "ringcast_mesh_refused_links", "Links between daemons that ended.", labels=("reason",)
    )
    for reason, count in (
        ("mesh", mesh.foreign), ("stranger", mesh.strangers_refused), ("bad message", mesh.bad_messages),
        ("slow", mesh.slow_links),
    ):  # fmt: skip
        refused.add_metric((reason,), count)
    yield refused


def _clocks(clocks: Mapping[str, ClockStatus]) -> Iterator[Metric | Rows]:
    families = {
        field: (Rows(kind, f"ringcast_clock_{name}", said), scale)
        for field, kind, name, said, scale in (
            ("offset_ns", "gauge", "offset_seconds", "How far a node's clock is ahead of this node's.", 1e-9),
            ("drift", "gauge", "drift_ratio", "By how much that grows, in seconds a second.", 1.0),
            ("bound_ns", "gauge", "bound_seconds", "The offset's error is no more.", 1e-9),
            ("half_round_trip_ns", "gauge", "half_round_trip_seconds", "Half of the mean round trip of probes.", 1e-9),
            ("steps", "counter", "steps", "How often the clock was seen to be set.", 1.0),
        )
    }
    disagrees = Rows("gauge", "ringcast_clock_disagrees", "1 where a common source is set and this clock violates it.")
    for node, clock in clocks.items():
        if clock.source == "unknown":
            continue
        labels = label_text({"node": node, "source": clock.source})
        for field, (family, scale) in families.items():
            family.add(labels, getattr(clock, field) * scale)
        disagrees.add(labels, float(bool(clock.violation)))
    yield from (family for family, _ in families.values())
    yield disagrees


def _publishers(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    counts = {
        counter: Rows("counter", f"ringcast_publisher_{name}", said)
        for counter, name, said in (
            ("sent", "messages", "Messages that a publisher of this node sent."),
            ("bytes", "bytes", "Bytes of those messages."),
            ("waits", "waits", "How often it waited for reliable subscribers."),
            ("overruns", "overruns", "How often it went on without one that was too slow."),
        )
    }
    last = Rows("gauge", "ringcast_publisher_last_message_timestamp_seconds", "When it sent last.")
    for row in snapshot.publishers:
        labels = label_text(
            {"tag": row.info.tag, "publisher": f"{row.info.incarnation:016x}", "program": row.info.program}
        )
        for counter, family in counts.items():
            family.add(labels, row.counters.get(counter, 0))
        if row.last_sent_ns:
            last.add(labels, row.last_sent_ns / 1e9)
    yield from counts.values()
    yield last


def _subscribers(snapshot: Snapshot) -> Iterator[Metric | Rows]:
    counts = {
        counter: Rows("counter", f"ringcast_subscriber_{counter}_messages", said)
        for counter, said in (
            ("received", "Messages that a subscriber of this node read."),
            ("lost", "Messages that it should have had and did not get."),
        )
    }
    for row in snapshot.subscribers:
        labels = label_text({"pattern": row.info.pattern, "subscriber": str(row.info.id), "program": row.info.program})
        for counter, family in counts.items():
            if counter in row.counters:
                family.add(labels, row.counters[counter])
    yield from counts.values()


def _channels(rows: Sequence[ChannelStatus]) -> Iterator[Metric | Rows]:
    yield GaugeMetricFamily("ringcast_channels", "Streams between this node and others.", len(rows))
    fields = {
        field: Rows("counter", f"ringcast_channel_{name}", said)
        for field, name, said in (
            ("messages", "messages", "Messages that the channel carried."),
            ("bytes", "bytes", "Bytes of those messages."),
            ("lost", "lost_messages", "Messages that the channel lost."),
        )
    }
    counters = {
        counter: Rows("counter", f"ringcast_channel_{name}", said) for counter, (name, said) in _COUNTERS.items()
    }
    delay = Rows("gauge", "ringcast_channel_delay_seconds", "Recent delay, by the clocks of both nodes.")
    jitter = Rows("gauge", "ringcast_channel_jitter_seconds", "Recent jitter of that delay.")
    # Two channels may be alike for a moment, while one takes over from the other: of those the later is shown.
    for key, row in {_key(row): row for row in rows}.items():
        labels = _channel_labels(key)
        for field, family in fields.items():
            if (value := getattr(row, field)) is not None:
                family.add(labels, value)
        for counter, family in counters.items():
            if value := row.counters.get(counter):  # most never move; a series begins with what happens first
                family.add(labels, value)
        if row.messages and "delay_ns" in row.counters:
            delay.add(labels, row.counters["delay_ns"] / 1e9)
            jitter.add(labels, row.counters["jitter_ns"] / 1e9)
    yield from (*fields.values(), *counters.values(), delay, jitter)


@lru_cache(8192)  # scrape after scrape they are the same
def _channel_labels(key: tuple[str, ...]) -> str:
    return label_text(dict(zip(_CHANNEL, key, strict=True)))


def _key(row: ChannelStatus) -> tuple[str, ...]:
    size = f"{row.size[0]}x{row.size[1]}" if row.size else ""
    return row.direction, row.node, row.tag, f"{row.incarnation:016x}", row.transport, str(row.every), size
