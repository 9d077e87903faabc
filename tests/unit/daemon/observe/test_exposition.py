"""Metrics as text: the library's own writer makes the same bytes, and its parser reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ringcast.control.answers import Status
from ringcast.control.status import ChannelStatus, ClockStatus, PublisherStatus, SubscriberStatus
from ringcast.daemon.mesh.status import MeshStatus
from ringcast.daemon.observe.exposition import write
from ringcast.daemon.observe.metrics import families
from ringcast.daemon.observe.snapshot import Snapshot
from ringcast.model.identity import PublisherInfo, SubscriberInfo

ODD = 'a "quoted"\\ \n name'


def channel(number: int, **fields: object) -> ChannelStatus:
    given = {
        "direction": "in", "node": "b", "tag": "lab/x", "incarnation": number, "transport": "nak", "every": 1,
        "reliable": False, "messages": 5, "bytes": 500, "lost": 1,
        "counters": {"delay_ns": 2_000_000, "jitter_ns": 1000, "naks": 3, "late": 0},
    }  # fmt: skip
    return ChannelStatus(**{**given, **fields})


def snapshot() -> Snapshot:
    publisher = PublisherInfo(id=1, node="a", tag="lab/x", incarnation=255, pid=1, user="u", program=ODD)
    subscriber = SubscriberInfo(id=2, node="a", pattern="lab/**", pid=1, user="u", reliable=False, program="p")
    return Snapshot(
        clocks={"b": ClockStatus(source="measured", offset_ns=3_000_000_000, drift=7e-6, bound_ns=50_000, steps=2)},
        status=Status(
            id=0,
            node="a",
            pid=1,
            version="1",
            uptime_s=1.5,
            clients=1,
            tags=2,
            rings=3,
            budget_bytes=10**9,
            used_bytes=10,
            bad_messages=0,
            until_idle=False,
            lingering=1,
            mesh=ODD,
        ),
        mesh=MeshStatus(
            serving=True,
            links=1,
            strangers_refused=0,
            bad_messages=0,
            slow_links=0,
            refused={"implausible age": 3},
            foreign=2,
            refusals={},
            scouting=[],
        ),
        nodes={"here": 2},
        longest_slice_s=0.001,
        dropped={"udp": {"stranger": 7}},
        channels=[
            channel(1),
            channel(2),
            channel(2, messages=6),
            channel(3, direction="out", messages=None, counters={}),
        ],
        publishers=[
            PublisherStatus(info=publisher, alive=True, counters={"sent": 9, "bytes": 90}, last_sent_ns=10**18)
        ],
        subscribers=[SubscriberStatus(info=subscriber, counters={"received": 4, "lost": 2}, latency=[])],
    )


class Read(Collector):
    """What the library's parser makes of a text."""

    def __init__(self, text: bytes) -> None:
        self._text = text.decode()

    def collect(self) -> Iterator[Metric]:
        yield from text_string_to_metric_families(self._text)


def test_what_the_library_reads_it_writes_as_the_same_bytes() -> None:
    text = write(families(snapshot()))
    registry = CollectorRegistry()
    registry.register(Read(text))
    assert generate_latest(registry) == text


def test_the_library_reads_it() -> None:
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(write(families(snapshot())).decode())
        for sample in family.samples
    }
    values = {(key[0], dict(key[1:]).get("publisher", "")): value for key, value in found.items()}
    assert values["ringcast_channel_messages_total", f"{1:016x}"] == 5
    assert values["ringcast_channel_messages_total", f"{2:016x}"] == 6  # of two alike the later
    assert ("ringcast_channel_messages_total", f"{3:016x}") not in values  # nobody counts them at this end
    assert values["ringcast_channel_delay_seconds", f"{1:016x}"] == 0.002
    assert values["ringcast_channel_naks_total", f"{1:016x}"] == 3
    assert ("ringcast_channel_late_datagrams_total", f"{1:016x}") not in values
    assert values["ringcast_subscriber_lost_messages_total", ""] == 2
    assert values["ringcast_ring_memory_limit_bytes", ""] == 1e9
    info = next(dict(key[1:]) for key in found if key[0] == "ringcast_node_info")
    assert info["mesh"] == ODD


def test_names_keep_to_the_conventions() -> None:
    for metric in text_string_to_metric_families(write(families(snapshot())).decode()):
        assert metric.name.startswith("ringcast_")
        assert metric.documentation.endswith(".")
        for sample in metric.samples:
            assert sample.name.endswith("_total") == (metric.type == "counter")
