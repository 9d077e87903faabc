"""Names of transports: as daemons write them and as experiments call them."""

from __future__ import annotations

import pytest

from ringcast.adapt.names import Makeup, called, carried, chosen_as, keeps_order, makeup
from ringcast.transport import find
from ringcast.transport.recipe import unordered


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("udp", "udp"),
        ("tcp", "tcp"),
        ("multicast", "multicast"),
        ("nak", "multicast+nak"),
        ("ordering+parity:r=4,c=3,patience=10ms", "multicast+parity:r=4,c=3,patience=10ms"),
        ("lateral+nak:r=4,c=3", "multicast+lateral+nak:r=4,c=3"),
        ("ordering", "multicast"),
    ],
)
def test_experiments_and_daemons_name_the_same(label: str, text: str) -> None:
    assert carried(label) == text
    find(text)


@pytest.mark.parametrize(
    ("written", "ordered", "name"),
    [
        ("multicast+parity:r=4,c=3", False, "parity:r=4,c=3"),
        ("multicast+parity:r=4,c=3", True, "ordering+parity:r=4,c=3"),
        ("multicast+nak", False, "nak"), ("multicast+nak", True, "nak"), ("tcp", True, "tcp"), ("tcp", False, "tcp"),
        ("multicast", False, "multicast"), ("multicast", True, "ordering+multicast"), ("udp", True, "udp"),
        ("udp", False, "udp"), ("nak", True, ""), ("parity:r=4,c=3", False, ""),
    ],
)  # fmt: skip
def test_a_channel_as_daemons_list_it_has_a_name_in_experiments_and_back(
    written: str, ordered: bool, name: str
) -> None:
    # Who wants no order is carried by what `unordered` makes of the choice, and that is what is listed.
    listed = written if ordered else unordered(written)
    assert called(listed) == name
    assert chosen_as(listed) == written
    assert not name or carried(name) == written


def test_a_list_says_whether_the_order_is_kept() -> None:
    assert keeps_order("multicast+parity:r=4,c=3")
    assert not keeps_order(unordered("multicast+parity:r=4,c=3"))
    assert keeps_order(unordered("multicast+nak")), "what asks again waits for it, whoever wants no order"


def test_what_a_name_says() -> None:
    assert makeup("multicast+parity+nak:r=4,c=1,flush=1s") == Makeup(True, "parity", 4.0, 1.0, 1.0, False, False)
    assert makeup("tcp") == Makeup(True, "", 8.0, 3.0, 0.005, True, True)
    for flush in ("2s", "2000ms", "2000000us", "2000000000ns"):
        assert makeup(f"multicast+parity:r=4,c=1,flush={flush}").flush_s == pytest.approx(2.0)
    assert makeup("lateral:r=x,flush=soon") == Makeup(False, "lateral", 8.0, 3.0, 0.005, True, False)


@pytest.mark.parametrize("number", ["inf", "nan", "1e400", "-3", "1e99"])
def test_a_number_that_no_daemon_writes_is_the_default(number: str) -> None:
    usual = makeup("multicast+parity")
    assert makeup(f"multicast+parity:r={number},c={number},flush={number}s") == usual
