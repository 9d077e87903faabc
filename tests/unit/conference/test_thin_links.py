"""What a page behind a thin link gets: smaller pictures, then fewer voices, those who talk first; more when it can."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import ringcast.conference


def test_it_gets_less_and_then_more_again() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the page's JavaScript is not checked (apt install nodejs)")
    page = Path(ringcast.conference.__file__).parent / "page"
    script = Path(__file__).parent / "thin_cases.mjs"
    done = subprocess.run([node, str(script), str(page / "thin.js")], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["steps"] == [
        [False, False, None, None],
        [True, True, None, None],
        [True, True, 2, [2, 3]],
        [True, True, 1, [2]],
        [False, True, 1, [2]],
        [False, True, 1, [2]],
        [True, True, 2, [2, 3]],
        [True, True, 1, [2]],
        [False, True, 1, [2]],
        [True, True, 2, [2, 3]],
        [True, True, 3, [2, 3, 1]],
        [True, True, None, None],
        [True, False, None, None],
    ]
    assert found["kept"] == [3, 2]
