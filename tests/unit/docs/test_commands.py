"""Every `ringcast VERB ...` and `make TARGET` that a page shows is understood as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from markdown_pages import ROOT, blocks, pages, without_blocks

from ringcast.cli.program import VERBS, parser_of

_SHELL = ("", "sh", "bash")
_BEFORE = re.compile(r"^(?:\$ |sudo |[A-Z_]+=\S+ )*(?:/opt/ringcast/bin/|\.venv/bin/)?")
_PLACEHOLDERS = {"VERB", "NAME"}


def lines_of(text: str) -> list[str]:
    """Command lines of shell blocks, continued ones joined, those quoted in programs, and code in sentences."""
    found = []
    for block in blocks(text):
        if block.language in _SHELL:
            found += block.text.replace("\\\n", " ").splitlines()
        elif block.language == "python":
            found += re.findall(r"'(ringcast [^'\n]+)'", block.text)
    found += [" ".join(code.split()) for code in re.findall(r"`((?:[^`\n]|\n(?!\n))+)`", without_blocks(text))]
    return found


def commands(text: str, program: str) -> set[str]:
    found = set()
    for line in lines_of(text):
        plain = re.split(r"\s+#|\s[|>&]\s|\s2>", line)[0]
        for part in plain.split(";"):
            command = _BEFORE.sub("", part.strip())
            if command.startswith(f"{program} "):
                found.add(command.strip())
    return found


def understood(command: str) -> None:
    """Raises SystemExit, as argparse does, when it is not."""
    _, verb, *rest = shlex.split(command)
    if verb.startswith("--"):
        assert verb in ("--help", "--version")
        return
    if verb in _PLACEHOLDERS:
        return
    assert verb in VERBS, command
    if not rest or "--help" in rest or _PLACEHOLDERS & set(rest):
        return  # only spoken of
    parser_of(verb).parse_args(rest)


ALL = [(page, command) for page in pages() for command in sorted(commands(page.read_text(), "ringcast"))]


@pytest.mark.parametrize(("page", "command"), ALL, ids=[f"{page.name}: {command}" for page, command in ALL])
def test_it_is_understood(page: Path, command: str) -> None:
    understood(command)


def test_there_are_many() -> None:
    assert len(ALL) > 80


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_make_knows_the_targets(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for command in commands(page.read_text(), "make") for word in command.split()[1:] if "=" not in word}
    assert named - {"TARGET"} <= targets


def test_mistakes_are_found() -> None:
    assert commands("```\nringcast sub x --nonsense   # why\n```\n and `ringcast hz x`", "ringcast") == {
        "ringcast sub x --nonsense", "ringcast hz x",
    }  # fmt: skip
    assert commands("```python\nx = 1  # as 'ringcast hz y' does\n```\n", "ringcast") == {"ringcast hz y"}
    with pytest.raises(SystemExit):
        understood("ringcast sub x --nonsense")
