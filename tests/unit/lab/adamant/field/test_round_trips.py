from __future__ import annotations

from ringcast.lab.adamant.field import round_trips


def test_round_trips_are_compared_within_rounds() -> None:
    # The machine is twice as slow in the second round; the transports' ratio is not.
    batches = {"udp": [[100] * 3, [200] * 3], **{name: [[110] * 3, [220] * 3] for name in round_trips.ASKED}}
    batches["parity"] = [[120] * 3, [240] * 3]
    rows = {row.name: row for row in round_trips.conclude(batches).rows}
    assert len(rows) == 3
    nak, parity = (rows[round_trips.row_name(name)] for name in ("nak", "parity"))
    assert (nak.value, nak.met, parity.value, parity.met) == (1.1, True, 1.2, False)
