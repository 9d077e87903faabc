"""Lines of keys, as a person counts them."""

from __future__ import annotations

import tomllib

import pytest

from ringcast.model.toml_lines import line_of, line_of_error, lines_of

TEXT = '''\
# a comment
name = "a"   # line 2

listen = [
  "0.0.0.0:7417",   # [not.a.table]
]
motto = """
[nor.this]
x = 1
"""
limits.memory = "1G"

[tags."lab/x = [y]"]   # line 13
depth = 1
schema = { type = "object", inner = { deep = 1 } }

[[rules]]
tags = "a"
[[rules]]
tags = "b"
[rules.more]
x = 1
[[rules.list]]
y = 1
[[rules.list]]
y = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2), (("listen",), 4), (("motto",), 7), (("limits", "memory"), 11), (("tags",), 13),
        (("tags", "lab/x = [y]"), 13), (("tags", "lab/x = [y]", "depth"), 14),
        (("tags", "lab/x = [y]", "schema", "inner", "deep"), 15), (("rules", 0, "tags"), 18), (("rules", 1), 19),
        (("rules", 1, "tags"), 20), (("rules", 1, "more", "x"), 22), (("rules", 1, "list", 0, "y"), 24),
        (("rules", 1, "list", 1, "y"), 26),
    ],
)  # fmt: skip
def test_each_key_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert lines_of(TEXT)[path] == line


def test_what_has_no_line_has_that_of_what_is_around_it() -> None:
    lines = lines_of(TEXT)
    assert line_of(lines, ("listen", 0)) == 4
    assert line_of(lines, ("rules", 1, "nothing")) == 19
    assert line_of(lines, ("nothing",)) == 1


@pytest.mark.parametrize(("text", "line"), [("a = 1\nb = \n", 2), ('a = 1\n\nc = "', 3), ("a = 1\na = 2\n", 2)])
def test_syntax_errors_have_a_line(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    assert line_of_error(caught.value, text)[0] == line
