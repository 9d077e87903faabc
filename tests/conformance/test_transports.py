"""Every registered transport keeps the promises of `ringcast.transport.interface`, and so do some put together."""

from __future__ import annotations

import pytest

from ringcast.testing.transports import CHECKS
from ringcast.transport import find, names
from ringcast.transport.stack_receiving import StackReceiving
from ringcast.transport.stacked import Stacked

STACKS = [
    "multicast+nak", "lateral+nak:r=4,c=3", "multicast+parity+nak", "lossy+nak:loss=5%,seed=1",
    "lossy+multicast+lateral+nak:loss=5%,seed=2", "lossy+ack:loss=5%,seed=3",
]  # fmt: skip


@pytest.mark.parametrize("name", [*names(), *STACKS])
@pytest.mark.parametrize("check", CHECKS)
def test_transport(name: str, check: str) -> None:
    CHECKS[check](find(name))


class _Attended(Stacked):
    """Received by the thread that waits, as by the only reader of a node, and by the delivery's own while none does."""

    def receive(self, host: str, port: int = 0) -> StackReceiving:
        return StackReceiving(host, port, attended=True)


@pytest.mark.parametrize("name", ["nak", "lossy+nak:loss=5%,seed=1"])
@pytest.mark.parametrize("check", CHECKS)
def test_transport_received_by_its_reader(name: str, check: str) -> None:
    CHECKS[check](_Attended.of(name))


def test_ours_are_registered() -> None:
    assert {"udp", "tcp", "multicast", "nak", "lateral", "parity", "ack"} <= set(names())
