"""Every code block is of a language that some test looks at: Python compiles, TOML parses, C++ is compiled.

Programs are run in `tests/system/node/documented/test_documented_programs.py` and
`tests/spark/test_documented_queries.py`, JavaScript in `tests/system/node/browsers/test_browser_exchanges_messages.py`.
Commands are parsed in `test_commands.py`, and `tests/unit/test_operating_page.py` knows the metrics that YAML blocks
name.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from markdown_pages import ROOT, Block, blocks, pages

ALL = [(page, block) for page in pages() for block in blocks(page.read_text())]


def of(language: str) -> list[tuple[Path, Block]]:
    return [(page, block) for page, block in ALL if block.language == language]


def test_each_has_a_language_that_is_tested() -> None:
    assert {block.language for _, block in ALL} <= {"", "python", "toml", "cpp", "yaml", "js"}
    assert {page.name for page, _ in of("yaml")} == {"operating.md"}
    assert {page.name for page, _ in of("js")} == {"gateway.md"}


def test_every_fence_is_closed_and_seen() -> None:
    for page in pages():
        fences = sum(line.lstrip().startswith("```") for line in page.read_text().splitlines())
        assert fences == 2 * len(blocks(page.read_text())), page


@pytest.mark.parametrize(("page", "block"), of("python"), ids=lambda value: getattr(value, "name", None))
def test_python_compiles(page: Path, block: Block) -> None:
    compile("\n" * (block.line - 1) + block.text, str(page), "exec")


@pytest.mark.parametrize(("page", "block"), of("toml"), ids=lambda value: getattr(value, "name", None))
def test_toml_parses(page: Path, block: Block) -> None:
    assert tomllib.loads(block.text), page


def test_what_is_shown_of_cpp_is_compiled() -> None:
    compiled = "".join(path.read_text() for path in (ROOT / "native" / "tests").rglob("*.cpp"))
    assert of("cpp")
    assert [page.name for page, block in of("cpp") if block.text not in compiled] == []


def test_comments_before_blocks_are_of_the_four_kinds() -> None:
    known = ("before:", "prints", "run with spark", "not run:")
    unknown = [block.comment for _, block in ALL if block.comment and not block.comment.strip().startswith(known)]
    assert unknown == []


def test_a_comment_belongs_to_the_block_after_it() -> None:
    first, second = blocks("<!-- before: x = 1 -->\n```python\nx\n```\ntext\n\n    ```toml\n    a = 1\n    ```\n")
    assert (first.comment.strip(), first.comment_line, first.line) == ("before: x = 1", 1, 3)
    assert (second.language, second.text, second.comment) == ("toml", "a = 1\n", "")
