"""Every registered transport keeps the promises of `ringcast.transport.interface`."""

from __future__ import annotations

import pytest

from ringcast.testing.transports import CHECKS
from ringcast.transport import find, names


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("check", CHECKS)
def test_transport(name: str, check: str) -> None:
    CHECKS[check](find(name))


def test_ours_are_registered() -> None:
    assert {"udp", "tcp"} <= set(names())
