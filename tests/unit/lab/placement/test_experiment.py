from __future__ import annotations

from ringcast.lab.measuring import files
from ringcast.lab.measuring.report import Findings
from ringcast.lab.placement import experiment, paper


def test_it_leaves_report_rows_and_drawings(tmp_path):
    findings = Findings()
    findings.add(paper.star_by_bound())
    left = files.write(findings, tmp_path / "new", "ringcast lab run placement --quick", experiment.draw)
    assert {path.name for path in left} >= {"report.md", "rows.json", "network-star.svg", "network-vbns.svg"}
    assert (tmp_path / "new" / "report.md").read_text().startswith("# ringcast lab run placement --quick\n")
