"""A table's state is the fold of its manifests, wherever folding begins."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ringcast.spark.lake.log import Log
from ringcast.spark.lake.manifest import FULL_EVERY, DataFile, Manifest, State, apply, next_manifest


def add(*names: str, removed: tuple[str, ...] = (), batch: int | None = None) -> Manifest:
    files = [DataFile(name, "p", 1, 1) for name in names]
    query = "q" if batch is not None else None
    return Manifest(number=0, what="t", run="", schema={}, added=files, removed=list(removed), query=query, batch=batch)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_every_sixteenth_manifest_holds_the_fold_of_all_before(steps: list[tuple[int, int]]) -> None:
    state, seen = State(), State()
    for at, (new, old) in enumerate(steps):
        manifest = next_manifest(state, add(f"f{new}", removed=(f"f{old}",), batch=at))
        state = apply(state, manifest)
        seen = manifest.state if manifest.state is not None else apply(seen, manifest)
        assert seen == state
        assert state.has("q", at)
        assert not state.has("q", at + 1)


def test_a_log_gives_back_what_was_published_and_a_number_only_once(tmp_path: Path) -> None:
    log, state = Log(tmp_path), State()
    for at in range(FULL_EVERY + 3):
        manifest = next_manifest(state, add(f"f{at}"))
        assert log.publish(manifest)
        assert not log.publish(manifest)
        state = apply(state, manifest)
    assert log.state() == state
    assert len(log.state().files) == FULL_EVERY + 3
    assert [m.number for m in log.history()] == list(range(FULL_EVERY + 3))
    assert not list(tmp_path.glob("manifests/.*"))
