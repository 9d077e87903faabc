"""Tables 1 and 2 from the model."""

from __future__ import annotations

import pytest

from ringcast.placement import adversity
from ringcast.placement.adversity import PAPER, Cell, derive, differences, level


def test_the_paper_has_17_cells_in_each():
    assert [len(PAPER[charge]) for charge in ("unicast", "multicast")] == [17, 17]


def test_table_1_is_the_papers():
    assert derive("unicast") == PAPER["unicast"]


def test_table_2_is_the_papers_but_for_the_proxy_nodes_bandwidth():
    # When the scaled streams are more than the full one, it is also less to receive the full one: 1 + S < 2 S.
    assert differences("multicast") == [Cell("proxy node", "intermediate", "bandwidth")]


def test_table_2_holds_only_while_the_scaled_streams_are_more_than_the_full_one(monkeypatch):
    monkeypatch.setitem(adversity.FACTORS, "multicast", (2, 3))
    assert derive("multicast")[Cell("publisher node", "publisher", "bandwidth")] == "Low"


@pytest.mark.parametrize(("value", "expected"), [(1, "Low"), (2, "Medium"), (3, "High")])
def test_levels(value, expected):
    assert level(value, [3, 1, 2]) == expected


def test_what_all_agree_in_is_low():
    assert level(1, [1, 1, 1]) == "Low"
