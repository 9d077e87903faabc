"""What belongs into a wheel."""

from __future__ import annotations

import pytest
from try_package import misfits

WHEEL = [
    "ringcast/__init__.py",
    "ringcast/py.typed",
    "ringcast/_core.pyi",
    "ringcast/_core.cpython-311-x86_64-linux-gnu.so",
    "ringcast/_lab.cpython-311-x86_64-linux-gnu.so",
    "ringcast-0.1.0.dist-info/METADATA",
    "ringcast-0.1.0.dist-info/licenses/LICENSE",
]


def test_a_wheel_as_it_should_be() -> None:
    assert misfits(WHEEL) == []


@pytest.mark.parametrize("name", WHEEL[1:5] + WHEEL[6:])
def test_what_is_missing_is_named(name: str) -> None:
    (sentence,) = misfits([other for other in WHEEL if other != name])
    assert sentence.endswith("is missing")


@pytest.mark.parametrize("name", ["ringcast/recovery_bench", "libnanobind-static.a", "tests/conftest.py"])
def test_what_should_not_be_there_is_named(name: str) -> None:
    assert f"{name} should not be there" in misfits([*WHEEL, name])
