"""What an experiment leaves in a folder: `report.md` with its tables, `rows.json` with every row, pictures as SVG, and
`figures.json` with tables and pictures as data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ringcast.lab.measuring import picture
from ringcast.lab.measuring.report import Findings
from ringcast.lab.testbed.cleanup import LabError


def nothing_more(folder: Path) -> list[Path]:
    return []


def write(
    findings: Findings, folder: Path, command: str, more: Callable[[Path], list[Path]] = nothing_more
) -> list[Path]:
    """Leave the report in `folder`, and what `more` writes there; returns all files. Raises LabError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report, rows = folder / "report.md", folder / "rows.json"
        report.write_text(findings.markdown(command))
        rows.write_bytes(msgspec.json.format(msgspec.json.encode([row.document() for row in findings.rows])))
        data = {"tables": findings.tables, "pictures": findings.pictures, "notes": findings.notes}
        (folder / "figures.json").write_bytes(msgspec.json.encode(data))
        return [report, rows, *more(folder), *(picture.draw(one, folder) for one in findings.pictures)]
    except OSError as exc:
        raise LabError(f"cannot write the results into {folder}: {exc}; choose another place with --out") from exc
