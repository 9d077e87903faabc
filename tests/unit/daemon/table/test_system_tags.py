"""What daemons publish of their channels can be read back as it was."""

from __future__ import annotations

import msgspec
import pytest

from ringcast.control.status import ChannelEnvironment, ChannelStatus
from ringcast.daemon.table.system_tags import decode, encode, encode_channel

MET = ChannelEnvironment(
    seconds=10.0, receivers=3, loss_percent=None, burst=None, rate_hz=100.0, payload_bytes=64.0, round_trip_us=40.0,
    bandwidth_left_mbit=None, cpu_left_percent=50.0,
)  # fmt: skip


@pytest.mark.parametrize("size", [None, (320, 240)])
@pytest.mark.parametrize("counted", [None, 7])
def test_rows_come_back(size: tuple[int, int] | None, counted: int | None) -> None:
    row = ChannelStatus(
        direction="in", node="a", tag="x", incarnation=2**64 - 1, transport="nak", every=2, reliable=True,
        messages=counted, bytes=counted, lost=counted, counters={"delay_sum_ns": -5}, size=size, rate_hz=1.5,
        environment=MET if size else None,
    )  # fmt: skip
    assert decode(msgspec.json.decode(encode("b", 123, [encode_channel(row)], {}))) == (123, [row])


def test_what_is_something_else_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode({"channels": 3})
