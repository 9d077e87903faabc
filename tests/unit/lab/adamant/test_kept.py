"""Runs that are done are not run again until they are in the lake."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from lab_fakes import CountedSteps

from ringcast.lab.adamant import experiment
from ringcast.lab.adamant.grid import Cell, Grid
from ringcast.lab.adamant.kept import FILE, Kept, forget
from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.workers import workers
from ringcast.lab.testbed.cleanup import LabError

GRID = Grid((Cell(3, 0.03, 1.0, 50.0), Cell(2, 0.0, 1.0, 100.0)), ("udp", "nak", "tcp"), 50, 2)


def run(folder: Path, grid: Grid = GRID, name: str = "some") -> list[experiment.Result]:
    with workers() as pool, Kept(folder) as kept:
        return experiment.run_grid(name, grid, CountedSteps(), pool, kept)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[packet_loss.Scenario]:
    """What is really simulated."""
    done: list[packet_loss.Scenario] = []
    real = packet_loss.run

    def counted(scenario: packet_loss.Scenario) -> packet_loss.Outcome:
        done.append(scenario)
        return real(scenario)

    monkeypatch.setattr(packet_loss, "run", counted)
    return done


def test_what_was_run_is_known_the_next_time(tmp_path: Path, simulated: list[packet_loss.Scenario]) -> None:
    first = run(tmp_path)
    assert len(simulated) == GRID.runs
    assert run(tmp_path) == first
    assert len(simulated) == GRID.runs
    more = run(tmp_path, msgspec.structs.replace(GRID, repetitions=3))
    assert len(simulated) == GRID.runs + len(GRID.cells) * len(GRID.transports)
    assert [one for one in more if one.repetition < 2] == first


def test_a_record_that_was_cut_off_is_run_again(tmp_path: Path, simulated: list[packet_loss.Scenario]) -> None:
    first = run(tmp_path)
    data = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(data[:-5])
    assert run(tmp_path) == first
    assert len(simulated) == GRID.runs + 1
    assert run(tmp_path) == first
    assert len(simulated) == GRID.runs + 1, "what follows the whole records is written over"


def test_another_experiment_and_what_was_forgotten_are_run(
    tmp_path: Path, simulated: list[packet_loss.Scenario]
) -> None:
    run(tmp_path)
    run(tmp_path, name="other")
    assert len(simulated) == 2 * GRID.runs
    forget(tmp_path)
    forget(tmp_path)
    run(tmp_path)
    assert len(simulated) == 3 * GRID.runs


def test_without_a_folder_nothing_is_kept(simulated: list[packet_loss.Scenario]) -> None:
    for _ in range(2):
        with workers() as pool:
            experiment.run_grid("some", GRID, CountedSteps(), pool)
    assert len(simulated) == 2 * GRID.runs


def test_a_run_that_ends_after_all_was_stopped_spoils_nothing(tmp_path: Path) -> None:
    (first,) = run(tmp_path, Grid(GRID.cells[:1], ("udp",), 50, 1))
    with Kept(tmp_path) as kept:
        kept.add(b"a" * 16, first)
    kept.add(b"b" * 16, first)
    with Kept(tmp_path) as again:
        assert again.find(b"a" * 16) == first
        assert again.find(b"b" * 16) is None


def test_before_a_run_is_done_nothing_is_written(tmp_path: Path) -> None:
    with Kept(tmp_path / "out"):
        pass
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(LabError, match="choose another place with --out"):
        run(tmp_path / "out")
