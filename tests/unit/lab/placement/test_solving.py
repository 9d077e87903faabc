from __future__ import annotations

from lab_fakes import CountedSteps

from ringcast.lab.placement import solving


def test_the_oracle_agrees():
    rows = {row.name: row for row in solving.oracle(CountedSteps(), 30).rows}
    assert rows["30 small networks, all costs and charges: verdict and optimum as the oracle's"].met is True
