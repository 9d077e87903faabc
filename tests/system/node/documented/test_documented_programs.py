"""The Python blocks of every page run as they stand there, beside a daemon, and print what the page says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documented_programs import needs_spark, not_run, program, steps
from markdown_pages import ROOT, pages

PAGES = [page for page in pages() if steps(page) and not needs_spark(page)]
MOST_NOT_RUN = 1
"""Blocks that no test can run, in all pages together."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_it_runs(page: Path, make_mesh: Any, run_program: Callable[..., Any], tmp_path: Path) -> None:
    """On a mesh of two nodes, a and b: what is said about several nodes can be tried."""
    a, _ = make_mesh(2)
    os.chdir(tmp_path)
    try:
        run_program(program(page), a.daemon.socket_path).end()
    finally:
        os.chdir(ROOT)


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    reasons = [(page.name, reason) for page in pages() for reason in not_run(page)]
    assert all(reason for _, reason in reasons)
    assert len(reasons) <= MOST_NOT_RUN, reasons


def test_a_block_that_fails_is_named_by_its_page_and_line(
    tmp_path: Path, daemon: Any, run_program: Callable[..., Any]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# T\n<!-- before: x = 1 -->\n```python\nprint(x)\n```\n<!-- prints -->\n```\n1\n```\n")
    run_program(program(page), daemon.socket_path).end()
    page.write_text("# T\n```python\n1 / 0\n```\n")
    failed = run_program(program(page), daemon.socket_path)
    _, errors = failed.process.communicate(timeout=30)
    assert 'File "page.md", line 3' in errors.decode()
    page.write_text("# T\n```python\nprint(1)\n```\n<!-- prints -->\n```\n2\n```\n")
    assert run_program(program(page), daemon.socket_path).end(status=1) == ""
