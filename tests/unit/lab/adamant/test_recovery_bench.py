from __future__ import annotations

from pathlib import Path

import pytest

from ringcast.lab.adamant import experiment as adamant
from ringcast.lab.adamant import recovery_bench
from ringcast.lab.testbed.cleanup import LabError


def test_the_recovery_code_allocates_nothing() -> None:
    costs = recovery_bench.measure(2_000)
    rows = recovery_bench.rows(costs, 2_000)
    assert {"ordering nak", "lateral", "parity", "ordering ack"} <= {cost.stages for cost in costs}
    assert all(row.value for row in rows[:-1])
    assert (rows[-1].value, rows[-1].met) == (0, True)
    worse = [recovery_bench.Cost("nak", 12, 1.0, 3)]
    assert recovery_bench.rows(worse, 10)[-1].met is False


def test_where_its_program_is_not_built_the_row_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recovery_bench, "PROGRAM", tmp_path / "recovery_bench")
    assert not recovery_bench.available()
    findings = adamant.AdamantFindings()
    (row,) = adamant._costs(True, findings)
    assert (row.value, row.met, row.kind) == (None, None, "asked")
    assert "skipped" in row.name
    assert findings.notes == [recovery_bench.MISSING]
    with pytest.raises(LabError, match="'make setup'"):
        recovery_bench.measure(10)
