"""Commits are whole, numbers only grow, and what is left behind by a killed writer does not count."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ringcast.errors import DiskFull, RecordingError
from ringcast.record.bronze import SCHEMA
from ringcast.record.commits import StreamKey
from ringcast.record.recording import Recording
from ringcast.record.upgrade import upgrade_recording
from ringcast.record.writer import RecordingWriter


def rows(first: int, last: int, incarnation: str = "00000000000000aa", tag: str = "a") -> pa.RecordBatch:
    made = [
        {
            "tag": tag, "publisher": "n/p/1", "incarnation": incarnation, "node": "n", "seq": seq, "every": 1,
            "event_time": seq, "event_ns": seq * 1000, "sent_ns": seq * 1000, "received_ns": seq * 1000, "lost": 0,
            "discardable": False, "codec": "bytes", "schema_id": None, "payload": str(seq).encode(),
        }
        for seq in range(first, last + 1)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(made, SCHEMA)


def numbers(path: Path, incarnation: str = "00000000000000aa") -> list[int]:
    return [seq for batch in Recording(path).read(incarnation, 0, 10**9) for seq in batch["seq"].to_pylist()]


def test_nothing_counts_before_its_commit(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        writer.write(rows(0, 4))
        assert numbers(tmp_path) == []
        writer.commit()
        assert numbers(tmp_path) == [0, 1, 2, 3, 4]
        writer.write(rows(5, 9))
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_repeats_are_left_out_within_and_across_commits(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        assert writer.write(rows(0, 4)) == 5
        assert writer.write(rows(2, 6)) == 2
        writer.commit()
        assert writer.write(rows(0, 6)) == 0
        assert writer.commit() is None
    with RecordingWriter(tmp_path) as writer:
        assert writer.positions() == {StreamKey("a", "n/p/1", "00000000000000aa"): 7}
        both = pa.Table.from_batches([rows(5, 8), rows(0, 1, "00000000000000bb", "b")]).combine_chunks().to_batches()[0]
        assert writer.write(both) == 4
        writer.commit()
    assert numbers(tmp_path) == list(range(9))
    assert numbers(tmp_path, "00000000000000bb") == [0, 1]


def test_remains_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        writer.write(rows(0, 4))
        writer.commit()
    # Killed after the data file had its name, and before its commit had.
    (tmp_path / "data" / "00000002.parquet").write_bytes((tmp_path / "data" / "00000001.parquet").read_bytes())
    (tmp_path / "data" / "00000003.part").write_bytes(b"half")
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]
    with RecordingWriter(tmp_path) as writer:
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["00000001.parquet"]
        writer.write(rows(5, 6))
        writer.commit()
    assert numbers(tmp_path) == list(range(7))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path), pytest.raises(RecordingError, match="another recorder"):
        RecordingWriter(tmp_path)
    RecordingWriter(tmp_path).close()


def test_reading_finds_later_commits(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        recording = Recording(tmp_path)
        writer.write(rows(0, 4))
        writer.commit()
        assert [commit.rows for commit in recording.refresh()] == [5]
        assert recording.refresh() == []
        writer.write(rows(5, 9))
        writer.commit()
        recording.refresh()
        found = [seq for batch in recording.read("00000000000000aa", 3, 6) for seq in batch["seq"].to_pylist()]
        assert found == [3, 4, 5, 6]


def test_what_is_no_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="ringcast record"):
        Recording(tmp_path)
    with RecordingWriter(tmp_path) as writer:
        writer.write(rows(0, 0))
        writer.commit()
    (tmp_path / "data" / "00000001.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordingError, match="cannot be read"):
        Recording(tmp_path)


def test_a_recording_is_a_delta_table_that_others_read_and_compact(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        for first in (0, 5):
            writer.write(rows(first, first + 4))
            writer.commit()
    table = DeltaTable(str(tmp_path))
    assert table.to_pyarrow_table().column_names == SCHEMA.names
    assert sorted(table.to_pyarrow_table()["seq"].to_pylist()) == list(range(10))
    before = [span for _, span in Recording(tmp_path).spans()]
    table.optimize.compact()
    recording = Recording(tmp_path)
    assert [commit.rows for commit in recording.commits] == [10], "not beside the files that it was made of"
    assert recording.positions() == {before[0].key: 10}
    assert numbers(tmp_path) == list(range(10))
    with RecordingWriter(tmp_path) as writer:
        assert writer.write(rows(8, 11)) == 2
        writer.commit()
    assert numbers(tmp_path) == list(range(12))


def test_an_older_recording_is_converted_once(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        for first in (0, 5):
            writer.write(rows(first, first + 4))
            writer.commit()
        old = Recording(tmp_path).commits
    (tmp_path / "commits").mkdir()
    for commit in old:
        named = msgspec.structs.replace(commit, file=Path(commit.file).name)
        (tmp_path / "commits" / f"{commit.number:08d}.json").write_bytes(msgspec.json.encode(named))
    shutil.rmtree(tmp_path / "_delta_log")
    for opened in (Recording, RecordingWriter):
        with pytest.raises(RecordingError, match="ringcast pipeline upgrade"):
            opened(tmp_path)
    assert upgrade_recording(tmp_path) == 2
    assert upgrade_recording(tmp_path) == 0
    assert numbers(tmp_path) == list(range(10))


def test_full_disk_keeps_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ringcast.record.writer as module

    with RecordingWriter(tmp_path) as writer:
        writer.write(rows(0, 4))
        writer.commit()
        writer.write(rows(5, 9))

        def full(path: Path) -> None:
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr(module, "_sync", full)
        with pytest.raises(DiskFull, match="5 message") as caught:
            writer.commit()
        assert caught.value.committed == 5
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["00000001.parquet"]


def test_what_daemons_told_is_part_of_all_that_was_recorded(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        writer.write(rows(0, 4))
        writer.write(rows(0, 2, "00000000000000bb", "@ringcast/a/choices"))
        writer.commit()
    everything = {span.tag for _, span in Recording(tmp_path).spans(None)}
    assert everything == {span.tag for _, span in Recording(tmp_path).spans()} | {"@ringcast/a/choices"}
