"""Every error that public docstrings and documents name can be caught by its name in `ringcast`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ringcast
from ringcast import errors

ROOT = Path(__file__).resolve().parents[2]
ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__.startswith(errors.__name__)
}
"""What there is to name."""


def docstrings() -> Iterator[tuple[str, str]]:
    """Of whatever an application can reach from `ringcast`."""
    for name in ringcast.__all__:
        thing = getattr(ringcast, name)
        yield name, inspect.getdoc(thing) or ""
        if inspect.isclass(thing):
            for member, value in inspect.getmembers(thing):
                if not member.startswith("_"):
                    yield f"{name}.{member}", inspect.getdoc(value) or ""


def named(text: str) -> set[str]:
    return ERRORS & set(re.findall(r"\b[A-Z][A-Za-z]+\b", text))


def test_errors_in_docstrings_are_exported() -> None:
    said = {where: named(text) for where, text in docstrings()}
    assert sum(map(len, said.values())) > 50, "docstrings say what they raise"
    missing = {where: found - set(ringcast.__all__) for where, found in said.items()}
    assert {where: found for where, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_errors_in_documents_are_exported(document: Path) -> None:
    assert named(document.read_text()) - set(ringcast.__all__) == set()


def test_what_is_exported_is_there_once() -> None:
    assert len(ringcast.__all__) == len(set(ringcast.__all__))
    assert all(hasattr(ringcast, name) for name in ringcast.__all__)
