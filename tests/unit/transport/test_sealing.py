"""Numbers of those who seal, and when a key is worn."""

from __future__ import annotations

import pytest

from ringcast import _core
from ringcast.transport.sealing import EPOCH_S, Sealing, fresh_seal, native_seal

KEY = 9
DATA = b"RC" + bytes([2, 1]) + bytes(4) + KEY.to_bytes(8, "little") + b"the rest of the header and the message"


def sealing(**how: object) -> Sealing:
    return Sealing(KEY, fresh_seal(), **how)  # type: ignore[arg-type]


def test_no_number_is_given_twice_and_receivers_have_their_own() -> None:
    made = sealing()
    own = [made.sender() for _ in range(5)]
    receivers = [made.receiver().sender for _ in range(5)]
    assert len({*own, *receivers}) == 10
    assert all(number < _core.SEAL_RECEIVER <= other for number in own for other in receivers)


def test_secrets_are_never_the_same() -> None:
    assert len({fresh_seal().secret for _ in range(100)}) == 100


def test_who_joins_late_opens_what_comes_and_nothing_older() -> None:
    made = sealing(epoch_packets=3)
    sender = _core.Sealer(made.native, made.sender())
    old = sender.seal(DATA)
    for _ in range(2):
        sender.seal(DATA)
    assert made.renew()
    late = native_seal(KEY, made.receiver())
    assert old is not None
    assert late is not None
    opener = _core.Opener(late)
    new = sender.seal(DATA)
    assert new is not None
    assert opener.open(new) == ("ok", DATA)
    assert opener.open(old) == ("old_key", None)


def test_a_key_is_worn_by_packets_or_by_time_but_not_unused() -> None:
    now = 0.0
    made = sealing(epoch_packets=10, clock=lambda: now)
    sender = _core.Sealer(made.native, 0)
    now = 10 * EPOCH_S
    assert not made.renew()
    sender.seal(DATA)
    assert made.renew()
    sender.seal(DATA)
    now += EPOCH_S - 1
    assert not made.renew()
    now += 2
    assert made.renew()
    for _ in range(9):
        sender.seal(DATA)
    assert not made.renew()
    sender.seal(DATA)
    assert made.renew()
    assert made.native.epoch == 3


def test_without_a_seal_there_is_none() -> None:
    assert native_seal(KEY, None) is None
    with pytest.raises(ValueError, match="32 bytes"):
        _core.ChannelSeal(KEY, b"short")
