from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from ringcast.cli.parts.output import Output, drawn, plain

HEADS = ("tag", "sent")
ROWS = [["lab/temp", "7"], ["lab/a", "1200"]]


def test_plain_columns_line_up_with_numbers_on_the_right() -> None:
    assert plain(HEADS, ROWS) == "tag       sent\nlab/temp     7\nlab/a     1200\n"


def test_a_table_without_rows_is_its_heads() -> None:
    assert plain(HEADS, []) == "tag  sent\n"


def test_on_a_terminal_a_value_is_never_markup() -> None:
    shown = io.StringIO()
    Console(width=80, file=shown).print(drawn(HEADS, [["[red]x[/red]", "1"]]))
    assert "[red]x[/red]" in shown.getvalue()


def test_json_is_all_there_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=True)
    output.note("said beside")
    output.progress("never in a log")
    output.record({"a": 1})
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"a": 1}
    assert captured.err == "said beside\n"


def test_a_stream_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=True)
    for number in range(3):
        output.record({"n": number, "text": "two\nlines"})
    assert [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()] == [0, 1, 2]


def test_into_a_pipe_tables_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).table(HEADS, ROWS, "title")
    assert capsys.readouterr().out == "title\n" + plain(HEADS, ROWS)
