from __future__ import annotations

from ringcast.lab.push_pull import agreement


def test_the_slowest_change_decides():
    assert agreement.conclude([0.01, 0.02, 0.9]).rows[0].met is True
    assert agreement.conclude([0.01, 0.02, 1.1]).rows[0].met is False
