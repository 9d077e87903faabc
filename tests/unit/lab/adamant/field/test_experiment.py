from __future__ import annotations

import pytest
from lab_fakes import CountedSteps

from ringcast.lab.adamant.field import experiment
from ringcast.lab.simulation.workers import workers


def test_without_a_network_every_row_is_there_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "unavailable", lambda: "network namespaces need root")
    with workers() as pool:
        findings, results = experiment.run(True, CountedSteps(), pool)
    assert not results
    assert len(findings.rows) == 6
    assert all(row.value is None and row.met is None and "skipped" in row.name for row in findings.rows)
    assert findings.notes == ["the part on a real network was skipped: network namespaces need root"]
