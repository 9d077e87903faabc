"""What the documentation site has beside docs/: mkdocs calls these functions while it builds (`hooks` in mkdocs.yml).

The README, ARCHITECTURE.md and CONTRIBUTING.md become pages, and so do the examples. The reference is made here too:
from docstrings for what an application holds (mkdocstrings renders them), from the parsers for the command line, so
that neither can differ from the code. Links between pages are turned into links within the site.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
from typing import TYPE_CHECKING, Any

from markdown_pages import ROOT

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

OUTSIDE = {
    "README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md",
    "bench/README.md": "benchmarking.md",
}  # fmt: skip
"""{page outside of docs/: its name in the site}"""

_MESSAGE = """\
What a subscriber receives and a history returns. `data` is decoded by the tag's codec, `seq` is the publisher's number,
`lost` counts what should have come before it and did not. Times are UTC in nanoseconds: `event_ns` is the
application's (the time of sending when it gave none), `sent_ns` was taken in `send`, `received_ns` in `recv`."""

REFERENCE: dict[str, tuple[str, str, list[str]]] = {
    "session": ("Session", "Where a program begins.", ["connect", "Session", "ConnectionCallback", "ConnectionChange"]),
    "tag": ("Tag", "What publishers and subscribers have in common.", ["Tag", "TagAttributes"]),
    "publisher": ("Publisher", "Sends messages on a tag.", ["Publisher", "Reservation"]),
    "subscriber": ("Subscriber", "Receives messages.", ["Subscriber", "SubscriberStats"]),
    "message": ("Message", _MESSAGE, ["Message", "PublisherInfo"]),
    "history": ("History", "Pull: messages by age, number or time.", ["History"]),
    "notify": (
        "Notification services", "Callback, queue, event and blackboard.",
        ["Callback", "MessageQueue", "ArrivalEvent", "Blackboard"],
    ),
    "watch": (
        "Watch", "Which nodes, publishers and subscribers come and go.", ["Watch", "WatchCallback", "Presence"],
    ),
    "asyncio": (
        "asyncio", "The same objects for event loops.",
        [
            "connect_async", "AsyncSession", "AsyncTag", "AsyncPublisher", "AsyncSubscriber", "AsyncHistory",
            "AsyncWatch",
        ],
    ),
}  # fmt: skip
"""{page: (title, one sentence, public names)}. Errors have a page of their own, and all other names are "values"."""

_LINK = re.compile(r"(\[[^\]]*\])\(([^)\s#]+)(#[^)\s]*)?\)")


# ---------------------------------------------------------------- what mkdocs calls


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = complete(config.nav, sorted(path.name for path in (ROOT / "docs").glob("*.md")))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "code.css", content=_colours()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    name = page.file.src_uri
    outside = {site: source for source, site in OUTSIDE.items()}
    return within_site(markdown, outside.get(name, f"docs/{name}"), name)


# ---------------------------------------------------------------- the site, as text


def complete(nav: list[Any], names: list[str]) -> list[Any]:
    """The navigation, with decisions listed, and pages that nobody named under "How to"."""
    named = set(re.findall(r"[\w/-]+\.md", repr(nav)))
    for section in nav:
        for title, entries in section.items():
            if title == "How to":
                entries += [name for name in names if name not in named]
            if title == "Explanation":
                (decisions,) = (entry for entry in entries if isinstance(entry, dict))
                decisions["Decisions"] = [
                    "decisions/README.md",
                    *(f"decisions/{path.name}" for path in sorted((ROOT / "docs" / "decisions").glob("0*.md"))),
                ]
    return nav


def generated() -> dict[str, str]:
    """{name in the site: Markdown} of all pages that docs/ does not hold."""
    found = {site: (ROOT / source).read_text() for source, site in OUTSIDE.items()}
    found["examples.md"] = _examples()
    for name, (title, sentence, objects) in _reference().items():
        listed = "\n\n".join(f"::: {path}" for path in objects)
        found[f"reference/{name}.md"] = f"# {title}\n\n{sentence}\n\n{listed}\n"
    found["reference/errors.md"] = "# Errors\n\n::: ringcast.errors\n    options:\n      show_root_heading: false\n"
    found["reference/command-line.md"] = command_line()
    return found


def _reference() -> dict[str, tuple[str, str, list[str]]]:
    """{page: (title, sentence, where each thing is defined)} of every public name that is no error."""
    import ringcast

    public = {
        name: f"{thing.__module__}.{thing.__qualname__}"
        for name in ringcast.__all__
        if hasattr(thing := getattr(ringcast, name), "__qualname__")
        and not thing.__module__.startswith("ringcast.errors")
    }
    pages = {
        page: (title, sentence, [public.pop(name) for name in names if name in public])
        for page, (title, sentence, names) in REFERENCE.items()
    }
    sentence = "What listings say about tags, nodes, channels and programs; codecs."
    return {**pages, "values": ("Values", sentence, sorted(public.values()))}


def within_site(markdown: str, source: str, name: str) -> str:
    """Links of the file `source` as the page `name` of the site writes them; what is not in the site is only named."""

    def turned(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in OUTSIDE:
            path = OUTSIDE[path]
        elif path == "examples":
            path = "examples.md"
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        elif source.startswith("docs/reference/") or not (ROOT / path).exists():
            return found[0]  # of the generator's own making, or wrong: mkdocs says so
        else:
            return text[1:-1]
        return f"{text}({posixpath.relpath(path, posixpath.dirname(name) or '.')}{anchor})"

    return _LINK.sub(turned, markdown)


def _colours() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs("[data-bs-theme=dark] .highlight")
    return f"{light}\n{dark}\n"


def _examples() -> str:
    parts = ["# Examples\n\nEach is a whole program, and the tests run it."]
    for path in sorted((ROOT / "examples").rglob("*.py")):
        parts.append(f"## {path.relative_to(ROOT)}\n\n```python\n{path.read_text()}```")
    return "\n\n".join(parts) + "\n"


def command_line() -> str:
    """The reference of `ringcast VERB`, from the parsers themselves."""
    from ringcast.cli.parts.completion.grammar import Level, grammar
    from ringcast.cli.program import GROUPS, VERBS, parser_of

    os.environ["COLUMNS"] = "100"  # argparse wraps what it says to the terminal's width
    levels: dict[str, list[Level]] = {}
    for level in grammar(VERBS, parser_of):
        levels.setdefault(level.path.partition(" ")[0], []).append(level)
    parts = ["# Command line\n\n`ringcast VERB --help` says the same in a terminal."]
    for heading, verbs in GROUPS.values():
        parts.append(f"## {heading.capitalize()}")
        for verb in verbs:
            for level in levels[verb]:
                parts += _level(level.path, _parser_at(parser_of(verb), level.path.split()[1:]), level.options)
    return "\n\n".join(parts) + "\n"


def _parser_at(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    for word in words:
        (inner,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = inner.choices[word]
    return parser


def _level(path: str, parser: argparse.ArgumentParser, options: Any) -> list[str]:
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    said = [f"### ringcast {path}", f"```\n{usage}\n```"]
    if parser.description:
        said.append(f"```text\n{parser.description.strip()}\n```")
    values = [action for action in parser._actions if not action.option_strings and action.help and action.dest]
    rows = [
        (str(action.metavar or action.dest), action.help or "")
        for action in values
        if not isinstance(action, argparse._SubParsersAction)
    ]
    rows += [
        (", ".join(option.names) + (f" {{{','.join(option.choices)}}}" if option.choices else ""), option.help)
        for option in options
        if option.names != ("-h", "--help")
    ]
    if rows:
        said.append("| | |\n|---|---|\n" + "\n".join(f"| `{_cell(a)}` | {_prose(b)} |" for a, b in rows))
    return said


def _cell(text: str) -> str:
    """For a cell of a table, within code."""
    return " ".join(text.replace("%%", "%").replace("|", "\\|").split())


def _prose(text: str) -> str:
    """For a cell of a table, where nothing in it is Markdown."""
    return re.sub(r"([*_\[\]`])", r"\\\1", _cell(text)).replace("<", "&lt;")
