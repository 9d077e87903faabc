"""A mission played by processes on nodes of a testbed and recorded at another: what a transport loses is missing, what
it repairs is not, and a clock that is ahead is measured and its times are translated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast.lab.testbed.network import unavailable
from ringcast.rescue import Settings
from ringcast.rescue.field import EYES, Field, Recorded

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

AHEAD_NS = 50_000_000
SETTINGS = Settings(seconds=1.0, uavs=1, cameras=2)


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    with Field(SETTINGS, ahead_s=AHEAD_NS / 1e9) as opened:
        yield opened


def rows(recorded: Recorded) -> list[dict[str, object]]:
    files = sorted((recorded.path / "data").rglob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_a_transport_that_repairs_leaves_nothing_out(field: Field, tmp_path: Path) -> None:
    recorded = field.record(tmp_path, "lossy+nak:loss=3%", pace=4.0)
    assert recorded.sent == recorded.received == len(rows(recorded)) == 10 + 50 + 10 + 2 * 25
    assert recorded.lost == 0
    begin = recorded.mission.settings.begin_ns
    for row in rows(recorded):
        within = row["event_ns"] - begin  # type: ignore[operator]
        assert -1_000_000 <= within < 1_001_000_000, "of the mission, by the base's clock, whatever the pace"


def test_a_transport_that_does_not_repair_loses_frames_of_many_packets(field: Field, tmp_path: Path) -> None:
    recorded = field.record(tmp_path, "lossy+multicast:loss=3%", pace=4.0)
    assert recorded.received < recorded.sent
    assert recorded.lost > 0
    kinds = [str(row["tag"]).rsplit("/", 1)[-1] for row in rows(recorded)]
    assert kinds.count("video") + kinds.count("ir") < 60
    assert (kinds.count("video") + kinds.count("ir")) / 60 < (kinds.count("pose") + kinds.count("gps")) / 60


def test_a_clock_that_is_ahead_is_measured(field: Field) -> None:
    found = field.clocks()
    for node, clock in found.items():
        assert clock.source == ("measured" if node == EYES else "same")
        assert abs(clock.offset_ns - (AHEAD_NS if node == EYES else 0)) <= clock.bound_ns
        assert clock.bound_ns < AHEAD_NS // 2
    assert len(found) == 3
