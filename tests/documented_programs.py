"""Programs as pages show them: the Python blocks of a page, in order, as one program.

A page's blocks share their names, as they would if a reader typed them one after the other. An HTML comment before a
block says what the reader does not see:

    <!-- before: code -->            is run before the block: what the page takes for granted
    <!-- not run: reason -->         the block cannot stand alone; tests count these
    <!-- run with spark -->          the block starts or needs Spark; `; before: code` may follow
    <!-- prints -->                  before a block without a language: what the Python block above it prints
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

from markdown_pages import Block, blocks

NOT_RUN, BEFORE, PRINTS, SPARK = "not run:", "before:", "prints", "run with spark"


class Step(NamedTuple):
    """`code` with the lines before it empty, so that a traceback has the page's numbers; `printed` is None where the
    page does not say what is printed."""

    code: str
    printed: str | None


def steps(page: Path, *, spark: bool = False) -> list[Step]:
    """What is run of a page: its plain blocks, or with `spark` all of them."""
    found: list[Step] = []
    for block in blocks(page.read_text()):
        said = block.comment.strip()
        if block.language == "python" and not said.startswith(NOT_RUN) and (spark or not _needs_spark(said)):
            if before := _before(said):
                found.append(Step("\n" * (block.comment_line - 1) + before, None))
            found.append(Step("\n" * (block.line - 1) + block.text, None))
        elif said == PRINTS:
            found[-1] = found[-1]._replace(printed=block.text)
    return found


def needs_spark(page: Path) -> bool:
    return any(_needs_spark(block.comment.strip()) for block in _python(page))


def not_run(page: Path) -> list[str]:
    """The reasons for which blocks of a page are left out."""
    reasons = [block.comment.strip() for block in _python(page)]
    return [reason.removeprefix(NOT_RUN).strip() for reason in reasons if reason.startswith(NOT_RUN)]


def program(page: Path, *, spark: bool = False) -> str:
    """Source that runs the steps of a page and compares what they print with what the page says."""
    return f"""
import contextlib, io
for code, printed in {[tuple(step) for step in steps(page, spark=spark)]!r}:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, {page.name!r}, "exec"), globals())
    if printed is not None:
        assert said.getvalue() == printed, f"the page says {{printed!r}}, and printed is {{said.getvalue()!r}}"
"""


def _python(page: Path) -> list[Block]:
    return [block for block in blocks(page.read_text()) if block.language == "python"]


def _needs_spark(said: str) -> bool:
    return said.startswith(SPARK)


def _before(said: str) -> str:
    """The code of `before:`, after `run with spark` or alone."""
    _, found, code = said.partition(BEFORE)
    return textwrap.dedent(code.strip("\n")) if found else ""
