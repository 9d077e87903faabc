from __future__ import annotations

from ringcast.lab.measuring.report import Findings
from ringcast.lab.placement import experiment, paper


def test_it_leaves_report_rows_and_drawings(tmp_path):
    findings = Findings()
    findings.add(paper.star_by_bound())
    files = experiment.write(findings, tmp_path / "new", ["--quick"])
    assert {path.name for path in files} >= {"report.md", "rows.json", "network-star.svg", "network-vbns.svg"}
    assert (tmp_path / "new" / "report.md").read_text().startswith("# ringcast lab run placement --quick\n")
