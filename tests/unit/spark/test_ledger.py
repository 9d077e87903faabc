"""What a ledger says of a batch that was interrupted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ringcast.spark.tags.ledger import ROWS, Ledger, State, local_path, unsent


def rows(*payloads: bytes) -> pa.Table:
    return pa.Table.from_pydict({"payload": list(payloads), "event_ns": [None] * len(payloads)}, schema=ROWS)


def test_done_is_remembered_per_query(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l").locked() as ledger:
        assert ledger.state("q").batch == -1
        ledger.stage("q", 4, 7, 100, rows(b"a", b"b"))
        ledger.done(State("q", 4, 2))
        assert ledger.staged("q", 4) is None
    with Ledger(tmp_path / "l").locked() as ledger:
        assert ledger.state("q") == State("q", 4, 2)
        assert ledger.state("another").batch == -1


def test_staged_rows_are_found_again(tmp_path: Path) -> None:
    with Ledger(tmp_path).locked() as ledger:
        ledger.stage("q", 4, 2**64 - 1, 100, rows(b"a", b"b"))
        staged = ledger.staged("q", 4)
        assert staged is not None
        assert (staged.incarnation, staged.first, staged.begun) == (2**64 - 1, 100, False)
        assert staged.rows["payload"].to_pylist() == [b"a", b"b"]
        ledger.begin()
        assert ledger.staged("q", 4).begun  # type: ignore[union-attr]
        assert ledger.staged("q", 5) is None
        assert ledger.staged("r", 4) is None
        # Staged anew, nothing of it was sent.
        ledger.stage("q", 4, 1, 0, rows(b"b"))
        assert not ledger.staged("q", 4).begun  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("newest", "begun", "left", "doubtful"),
    [
        (98, False, [b"a", b"b", b"c"], 0),
        (99, True, [b"a", b"b", b"c"], 0),
        (100, True, [b"b", b"c"], 0),
        (102, True, [], 0),
        (500, True, [], 0),
        (None, False, [b"a", b"b", b"c"], 0),
        (None, True, [], 2),
    ],
)
def test_what_is_left_to_send(
    tmp_path: Path, newest: int | None, begun: bool, left: list[bytes], doubtful: int
) -> None:
    with Ledger(tmp_path).locked() as ledger:
        ledger.stage("q", 0, 1, 100, rows(b"a", b"b", b"c"))
        if begun:
            ledger.begin()
        staged = ledger.staged("q", 0)
        assert staged is not None
        found, unknown = unsent(staged, newest)
        assert (found["payload"].to_pylist(), unknown) == (left, doubtful)


def test_places() -> None:
    assert local_path("/a/b") == Path("/a/b")
    assert local_path("file:///a/b%20c") == Path("/a/b c")
    assert local_path("hdfs://x/a") is None
