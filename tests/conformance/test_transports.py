"""Every registered transport keeps the promises of `ringcast.transport.interface`, and so do some put together."""

from __future__ import annotations

import pytest

from ringcast.testing.transports import CHECKS
from ringcast.transport import find, names

STACKS = [
    "multicast+nak", "lateral+nak:r=4,c=3", "multicast+parity+nak", "lossy+nak:loss=5%,seed=1",
    "lossy+multicast+lateral+nak:loss=5%,seed=2", "lossy+ack:loss=5%,seed=3",
]  # fmt: skip


@pytest.mark.parametrize("name", [*names(), *STACKS])
@pytest.mark.parametrize("check", CHECKS)
def test_transport(name: str, check: str) -> None:
    CHECKS[check](find(name))


def test_ours_are_registered() -> None:
    assert {"udp", "tcp", "multicast", "nak", "lateral", "parity", "ack"} <= set(names())
