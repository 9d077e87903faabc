from __future__ import annotations

from ringcast.lab.push_pull import fan_out


def test_fan_out_is_a_factor():
    assert fan_out.conclude({1: [[100] * 9] * 2, 10: [[105] * 9] * 2}).rows[0].met is True
    assert fan_out.conclude({1: [[100] * 9] * 2, 10: [[120] * 9] * 2}).rows[0].met is False
