"""Table 4: what a round trip is made of."""

from __future__ import annotations

import pytest
from lab_fakes import named

from ringcast.lab.push_pull import components


def parts(whole: float):
    near = {**dict.fromkeys(components.COMPONENTS[:5], 1.0), components.WHOLE: whole}
    found = {place: dict(near) for place in components.PLACES}
    found[components.REMOTE] |= {"proxy cpu": 2.0, "proxy communication": 3.0, components.WHOLE: 2 * whole}
    told = [{"place": place, "component": name, "us": us} for place, of in found.items() for name, us in of.items()]
    return components.conclude(components.components(told))


def test_table_4_has_all_components():
    findings = parts(5.5)
    (table,) = findings.tables
    assert [row[0] for row in table.rows] == [*components.COMPONENTS, "all of them", "the whole, measured"]
    assert table.rows[0][1:3] == ["1.00", "0.2816"]
    assert table.rows[5][1:] == ["-", "-", "-", "-", "2.00", "0.0420"]
    assert table.rows[-2][1:] == ["5.00", "-", "5.00", "-", "10.00", "-"]
    assert named(findings, "table 4, proxy on remote node: proxy communication").reference == pytest.approx(496.6)


@pytest.mark.parametrize(("whole", "met"), [(3.9, False), (4.1, True), (6.5, True), (7.0, False)])
def test_parts_that_do_not_add_up_are_seen(whole, met):
    findings = parts(whole)
    assert [named(findings, f"{place}: the parts add up").met for place in components.PLACES] == [met] * 3
