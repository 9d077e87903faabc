"""The tests that docs/transports.md names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_in_the_table_is_there() -> None:
    page = (ROOT / "docs" / "transports.md").read_text()
    table = page[page.index("## Bad luck") :].split("\n## ")[0]
    file, seen = "", 0
    for name in re.findall(r"`([^`]*(?:test_|::)[^`]*)`", table):
        path, _, test = name.partition("::")
        file = path.rpartition("/")[2] or file
        found = list(ROOT.glob(f"*tests/**/{file}")) + list(ROOT.glob(f"native/tests/*/{file}"))
        assert len(found) == 1, name
        assert f"def {test.partition('[')[0]}(" in found[0].read_text() or not test, name
        seen += 1
    assert seen > 25
