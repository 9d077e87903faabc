"""What `--part` may name is what an experiment says, and it is told of it."""

from __future__ import annotations

import importlib
import inspect

import pytest

from ringcast.cli.parts.labs.run import EXPERIMENTS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_with_parts_takes_one_and_others_have_none(name: str) -> None:
    experiment = importlib.import_module(EXPERIMENTS[name][0])
    parts = getattr(experiment, "PARTS", ())
    assert all(isinstance(part, str) for part in parts)
    taken = {"part", "folder"} & set(inspect.signature(experiment.run).parameters)
    assert taken == ({"part", "folder"} if parts else set())
