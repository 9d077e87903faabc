"""A table's log: which batch of a query was committed last, whoever committed it and whatever was cleaned up."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from ringcast.record import delta
from ringcast.record.delta import DataFile, Delta, described

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "value", "type": "long", "nullable": True, "metadata": {}}]})


def written(root: Path, number: int) -> list[DataFile]:
    (root / "data").mkdir(exist_ok=True)
    pq.write_table(pa.table({"value": [number]}), root / "data" / f"{number}.parquet")
    return [described(root, f"data/{number}.parquet")]


def test_batches_of_others_are_seen_as_they_come(tmp_path: Path) -> None:
    one, other = Delta(tmp_path, SCHEMA), Delta(tmp_path, SCHEMA)
    for number in range(4):
        writer = (one, other)[number % 2]
        assert writer.commit(written(tmp_path, number), batch=("query", number)) is not None
        assert (one.batch("query"), other.batch("query"), one.batch("another")) == (number, number, -1)
    assert one.commit(written(tmp_path, 9), batch=("query", 3)) is None, "the other one made it"
    assert len(one.state().files) == 4


def test_commits_that_were_cleaned_up_are_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = Delta(tmp_path, SCHEMA), Delta(tmp_path, SCHEMA)
    writer.commit(written(tmp_path, 0), batch=("query", 0))
    assert reader.batch("query") == 0
    for number in range(1, 6):
        writer.commit(written(tmp_path, number), batch=("query", number))
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in range(5):  # as the log's retention does it; the reader's own version is among them
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert (reader.batch("query"), len(reader.state().files)) == (5, 6)
    monkeypatch.setattr(delta, "CHECKPOINT_EVERY", 1)
    for number in range(6, 9):
        writer.commit(written(tmp_path, number), batch=("query", number))
    assert reader.batch("query") == 8


def test_others_who_write_delta_and_we_write_to_one_table(tmp_path: Path) -> None:
    table = Delta(tmp_path, SCHEMA)
    for number in range(0, 250, 2):
        table.commit(written(tmp_path, number), batch=("query", number), told={"run": "a"})
        if number % 50 == 0:
            write_deltalake(tmp_path, pa.table({"value": [number + 1]}), mode="append")
    theirs = DeltaTable(tmp_path)
    assert sorted(theirs.to_pyarrow_table()["value"].to_pylist()) == sorted([*range(0, 250, 2), 1, 51, 101, 151, 201])
    assert theirs.history(1)[0]["run"] == "a"
    assert theirs.transaction_version("query") == 248
    assert theirs.version() == table.state().version == 129
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert not list((tmp_path / "_delta_log").glob(".*.tmp"))


def test_several_at_once_lose_nothing_and_make_a_batch_once(tmp_path: Path) -> None:
    Delta(tmp_path, SCHEMA).commit(written(tmp_path, 0))

    def work(number: int) -> bool:
        table = Delta(tmp_path, SCHEMA)
        table.commit(written(tmp_path, number))
        return table.commit(written(tmp_path, 100 + number), batch=("query", 1)) is not None

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(work, range(1, 17)))
    assert made.count(True) == 1
    assert Delta(tmp_path, SCHEMA).state().rows == 1 + 16 + 1


def test_a_table_whose_writers_must_do_more_is_left_to_its_own_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Delta(tmp_path, SCHEMA)
    table.commit(written(tmp_path, 0))
    DeltaTable(tmp_path).alter.add_constraint({"small": "value < 10"})
    monkeypatch.setattr(delta, "append", lambda *_: pytest.fail("not by us"))
    table.commit(written(tmp_path, 1), batch=("query", 1))
    assert (table.state().rows, table.batch("query")) == (2, 1)


def test_a_table_that_was_made_anew_has_none_of_the_old_ones_batches(tmp_path: Path) -> None:
    table = Delta(tmp_path / "table", SCHEMA)
    for number in (7, 0):
        (tmp_path / "table").mkdir()
        table.commit(written(tmp_path / "table", number), batch=("query", number))
        assert table.batch("query") == number
        (tmp_path / "table").rename(tmp_path / f"old {number}")
