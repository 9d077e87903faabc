"""What is said of two trees' round trips, of made-up ones."""

import importlib.util
from pathlib import Path

import pytest

AGAINST = Path(__file__).resolve().parents[3] / "bench" / "trees" / "against.py"


@pytest.fixture(scope="module")
def against():
    spec = importlib.util.spec_from_file_location("bench_against", AGAINST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_median_of_pairs_is_judged_not_of_all(against):
    """One pair of turns fell into a slow moment: both trees were slow."""
    ours, theirs = [[100, 100], [900, 900], [101, 101]], [[100, 100], [900, 900], [100, 100]]
    ratio, low, high, figure = against.judged("nak", ours, theirs)
    assert (ratio.value, ratio.target, ratio.met) == (1.0, 1.02, True)
    assert low.value <= ratio.value <= high.value
    assert (figure.value, figure.reference) == (0.101, 0.1)


def test_three_in_a_hundred_are_too_many(against):
    assert against.judged("udp", [[103]] * 4, [[100]] * 4)[0].met is False


def test_nothing_measured_is_not_met(against):
    assert against.judged("udp", [], [])[0].met is False


def test_a_folder_that_is_no_built_tree(against, tmp_path):
    with pytest.raises(FileNotFoundError, match="no built tree"):
        against.interpreter(tmp_path)
