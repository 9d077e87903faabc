"""What `import ringcast` and a daemon do not load. Every program and every command pays for what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What loads others as well comes first: a failure then names the cause.
SELDOM_NEEDED = [
    "asyncio", "concurrent.futures", "hashlib", "importlib.metadata", "ssl", "subprocess", "tomllib",
    "numpy", "pyarrow", "pyspark", "highspy", "prometheus_client",
    "ringcast.aio", "ringcast.cli", "ringcast.codec.arrays", "ringcast.codec.audio", "ringcast.codec.images",
    "ringcast.control.peering", "ringcast.daemon", "ringcast.lab", "ringcast.placement", "ringcast.record",
    "ringcast.rescue", "ringcast.spark", "ringcast.testing", "ringcast.transport",
]  # fmt: skip


SELDOM_NEEDED_BY_A_DAEMON = ["numpy", "ringcast.daemon.network", "ringcast.placement"]


def loaded_with(module: str) -> set[str]:
    """The modules that an import adds to those that Python has loaded before it runs a program."""
    program = f"import sys; before = set(sys.modules); import {module}; print(*(sys.modules.keys() - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_with("ringcast")


@pytest.mark.parametrize("name", SELDOM_NEEDED)
def test_it_is_not_loaded(loaded: set[str], name: str) -> None:
    assert name not in loaded


def test_what_an_application_holds_is_loaded(loaded: set[str]) -> None:
    assert {"ringcast._core", "ringcast.session", "ringcast.publisher", "msgspec"} <= loaded


def test_a_daemon_without_a_network_loads_none() -> None:
    assert loaded_with("ringcast.daemon.operate.program").isdisjoint(SELDOM_NEEDED_BY_A_DAEMON)
