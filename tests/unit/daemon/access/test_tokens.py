"""Tokens, and what their rules allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcast.daemon.access.tokens import Permit, fingerprint, new_token, read
from ringcast.errors import BadConfiguration, NotAllowed


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pages.toml"
    path.write_text(text)
    return path


def test_a_token_is_known_by_its_fingerprint(tmp_path: Path) -> None:
    token = new_token()
    permits = read(file(tmp_path, (
        f'[tokens]\na = "{fingerprint(token)}"\nb = "{fingerprint("x")}"\n'
        '[[rules]]\ntoken = "a"\nmay = ["subscribe"]\ntags = ["lab/**"]\n'
    )))  # fmt: skip
    permit = permits.of(token)
    assert permit is not None
    assert permit.allows("subscribe", "lab/x")
    assert permit.sees("lab/x")
    assert not permit.sees("other")
    with pytest.raises(NotAllowed, match=r'token = "a", may = \["publish"\], tags = \["lab/x"\]'):
        permit.check("publish", "lab/x")
    other = permits.of("x")
    assert other is not None
    assert not other.sees("lab/x")
    assert permits.of("") is None
    assert permits.of(fingerprint(token)) is None


def test_without_rules_a_page_may_what_its_gateway_may() -> None:
    Permit().check("destroy", "**")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[tokens]\na = 'plain'", 2, "--new-token"),
        ("tokens = 3", 1, "tokens must be a table"),
        ("\n[[rules]]\ntoken = 'a'\nmay = 'pull'\ntags = 'x'", 2, "there is no token 'a'"),
        ("[[rules]]\nuser = 0\nmay = 'pull'\ntags = 'x'", 1, "for which token"),
        ("[[rules]]\ntoken = 'a'\nmay = 'pul'\ntags = 'x'", 3, "may must be"),
        ("rule = 3", 1, "did you mean 'rules'?"),
        ("[tokens\n", 1, "this is not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        read(file(tmp_path, text))
    assert caught.value.line == line
    assert words in str(caught.value)
