"""The pages that the site's build makes: every public name and every verb is in the reference, and links are turned."""

from __future__ import annotations

from markdown_pages import ROOT
from site_pages import command_line, complete, generated, within_site

import ringcast
from ringcast.cli.program import VERBS


def test_every_public_name_is_in_the_reference() -> None:
    made = generated()
    text = "".join(page for name, page in made.items() if name.startswith("reference/"))
    for name in ringcast.__all__:
        thing = getattr(ringcast, name)
        if not getattr(thing, "__module__", "ringcast.errors").startswith("ringcast.errors"):
            assert f".{thing.__qualname__}\n" in text, name
    assert "::: ringcast.errors" in made["reference/errors.md"]


def test_every_verb_is_in_the_reference() -> None:
    text = command_line()
    assert [verb for verb in VERBS if f"### ringcast {verb}\n" not in text] == []
    assert "### ringcast config show\n" in text
    assert "`--transport" in text
    assert "'lab/\\*/temp', 'lab/\\*\\*'" in text, "help texts are not Markdown"
    assert "%(" not in text


def test_links_are_turned_into_links_of_the_site() -> None:
    assert within_site("[a](docs/spark.md#x)", "README.md", "index.md") == "[a](spark.md#x)"
    assert (
        within_site("[a](../../ARCHITECTURE.md)", "docs/decisions/1.md", "decisions/1.md") == "[a](../architecture.md)"
    )
    assert within_site("[a](examples)", "README.md", "index.md") == "[a](examples.md)"
    assert within_site("[a](LICENSE)", "README.md", "index.md") == "a"
    assert within_site("[a](none.md)", "README.md", "index.md") == "[a](none.md)"
    assert within_site("[a](https://x.org/a.md)", "README.md", "index.md") == "[a](https://x.org/a.md)"


def test_the_navigation_lists_decisions_and_pages_that_nobody_named() -> None:
    nav = [{"How to": ["a.md"]}, {"Explanation": ["b.md", {"Decisions": []}]}]
    how, why = complete(nav, ["a.md", "b.md", "c.md"])
    assert how == {"How to": ["a.md", "c.md"]}
    listed = why["Explanation"][1]["Decisions"]
    assert len(listed) == len(list((ROOT / "docs" / "decisions").glob("*.md")))
