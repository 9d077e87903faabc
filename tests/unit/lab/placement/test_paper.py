from __future__ import annotations

from ringcast.lab.placement import paper


def test_the_star_is_as_the_table_says():
    assert [row.met for row in paper.star_by_bound().rows] == [True, True]


def test_tables_1_and_2_beside_the_papers():
    assert [row.value for row in paper.adversity_tables().rows] == [17, 16]
