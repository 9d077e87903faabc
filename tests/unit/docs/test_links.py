"""Every link of every page leads to a file that there is, and to a heading in it; both readers see the same page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_pages import ROOT, anchors, links, pages, without_blocks


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for target in links(page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_a_merge_left_nothing_behind(page: Path) -> None:
    assert not re.search(r"^(?:<<<<<<<|=======|>>>>>>>)( |$)", page.read_text(), re.MULTILINE)


def test_a_broken_link_is_found() -> None:
    text = "[a](there.md#one) `[b](not.md)` ![c](c.svg)\n```\n[d](d.md)\n```\n"
    assert links(text) == ["there.md#one", "c.svg"]
    assert anchors("# One `two`, three\n## One two three\n```\n# no\n```\n") == {"one-two-three", "one-two-three-1"}


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = (target.partition("#")[0] for target in links(page.read_text()))
        waiting += [(page.parent / target).resolve() for target in targets if target and "://" not in target]
    assert [named(page) for page in pages() if page not in seen] == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_lists_are_lists_for_github_and_for_the_site(page: Path) -> None:
    """The site's Markdown wants an empty line before a list, and four spaces for what is inside an item."""
    lines = without_blocks(page.read_text()).splitlines()
    item = re.compile(r" *(?:[-*]|\d+\.) ")
    wrong = [
        number
        for number, (before, line) in enumerate(zip(["", *lines], lines, strict=False), start=1)
        if (item.match(line) and before and not item.match(before) and not before.startswith(" "))
        or re.match(r"(?: {1,3}| {5,7})(?:[-*]|\d+\.) ", line)
    ]
    assert wrong == []
