"""Prometheus asks a daemon for its metrics: they agree with what the daemon says otherwise."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import ringcast

Samples = dict[str, list[tuple[dict[str, str], float]]]


def scrape(address: str) -> Samples:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_channels_rings_nodes_and_the_process(make_daemon: Any, eventually: Any, free_addresses: Any) -> None:
    one, two, metrics_one, metrics_two = free_addresses(4)
    first = make_daemon("--name", "one", "--mesh", "m", "--listen", one, "--no-scout", "--metrics", metrics_one)
    second = make_daemon(
        "--name", "two", "--mesh", "m", "--listen", two, "--no-scout", "--peer", one, "--metrics", metrics_two
    )
    with ringcast.connect(first.socket_path) as here, ringcast.connect(second.socket_path) as there:
        eventually(lambda: sum(row.state == "here" for row in there.nodes()) == 2)
        sub, pub = there.subscribe("lab/x"), here.publisher("lab/x")
        for _ in range(5):
            pub.send(b"12345678")
        for _ in range(5):
            sub.recv(timeout=30)
        sent, received = scrape(metrics_one), scrape(metrics_two)
        (publisher,) = here.tag("lab/x").publishers()
        incarnation = f"{publisher.info.incarnation:016x}"
    labels, value = next(row for row in sent["ringcast_publisher_messages_total"] if row[0]["tag"] == "lab/x")
    assert (labels["publisher"], value) == (incarnation, 5)
    labels, value = next(row for row in received["ringcast_channel_messages_total"] if row[0]["tag"] == "lab/x")
    assert (labels["direction"], labels["node"], labels["publisher"], value) == ("in", "one", incarnation, 5)
    assert next(v for k, v in received["ringcast_channel_bytes_total"] if k["tag"] == "lab/x") == 40
    assert {k["state"]: v for k, v in received["ringcast_nodes"]}["here"] == 2
    assert [v for k, v in received["ringcast_subscriber_received_messages_total"] if k["pattern"] == "lab/x"] == [5]
    assert sent["ringcast_node_info"][0][0]["mesh"] == "m"
    assert sent["process_resident_memory_bytes"][0][1] > 1e6
    assert sent["ringcast_ring_memory_bytes"][0][1] > 0


def test_a_daemon_alone_serves_them_too(make_daemon: Any, free_addresses: Any) -> None:
    (address,) = free_addresses(1)
    with ringcast.connect(make_daemon("--metrics", address).socket_path):
        assert scrape(address)["ringcast_clients"] == [({}, 1.0)]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{address}/secrets", timeout=30)


def test_an_address_that_is_taken_is_one_sentence(make_daemon: Any, free_addresses: Any, tmp_path: Path) -> None:
    (address,) = free_addresses(1)
    ringcast.connect(make_daemon("--metrics", address).socket_path).close()
    result = subprocess.run(
        [sys.executable, "-m", "ringcast", "daemon", "--socket", str(tmp_path / "x.sock"), "--metrics", address],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 1
    assert f"metrics cannot be served at {address}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
