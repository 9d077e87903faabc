"""`ringcast vars` beside a program that owns variables: what it prints, and what it says of mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ringcast.cli.program import main

Vars = Callable[..., Any]


@pytest.fixture
def plant(session: Any) -> Iterator[Any]:
    with session.variables("plant", period_s=0.005, frame_s=0.2) as made:
        made.add_many({"engine/rpm": 812.5, "engine/state": "idle", "curve": np.arange(3.0), "raw": b"\x01"})
        yield made


@pytest.fixture
def ask(daemon: Any, plant: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Vars:
    """Run the verb; what it printed as JSON, or with `fails` what it said of its failure."""
    monkeypatch.setenv("RINGCAST_SOCKET", daemon.socket_path)

    def run(*words: str, tag: str = "plant", fails: bool = False, text: bool = False) -> Any:
        code = main(["vars", tag, *words, *([] if fails or text else ["--json"])])
        out, errors = capsys.readouterr()
        assert (code != 0) == fails, errors
        if fails:
            assert "Traceback" not in errors
            return errors
        return out if text else [json.loads(line) for line in out.splitlines()] if "watch" in words else json.loads(out)

    return run


def test_list_has_names_types_and_values(ask: Vars, plant: Any) -> None:
    found = {row["name"]: row for row in ask("list", "--timeout", "60")}
    assert {name: row["type"] for name, row in found.items()} == {
        "curve": "float64[]", "engine/rpm": "float", "engine/state": "str", "raw": "bytes",
    }  # fmt: skip
    assert (found["curve"]["value"], found["raw"]["value"]) == ([0.0, 1.0, 2.0], "01")
    assert [row["name"] for row in ask("list", "engine/*", "--timeout", "60")] == ["engine/rpm", "engine/state"]
    assert "812.5" in ask("list", "--timeout", "60", text=True)


def test_get_and_set_ask_the_owner(ask: Vars, plant: Any) -> None:
    assert ask("get", "engine/rpm", "curve", "--timeout", "60") == {"engine/rpm": 812.5, "curve": [0.0, 1.0, 2.0]}
    ask("set", "engine/rpm", "900", "--timeout", "60")
    ask("set", "curve", "[4, 5]", "--timeout", "60")
    assert (plant["engine/rpm"], plant["curve"].tolist()) == (900.0, [4.0, 5.0])
    assert ask("get", "engine/state", "--timeout", "60", text=True) == "idle\n"


def test_browse_and_owners_ask_every_owner(ask: Vars, plant: Any) -> None:
    assert [row["name"] for row in ask("browse", "engine/*", "--timeout", "60")] == ["engine/rpm", "engine/state"]
    (owner,) = ask("owners", "--timeout", "60")
    assert (owner["variables"], owner["period_s"], owner["frame_s"]) == (4, 0.005, 0.2)
    assert "0.005" in ask("owners", "--timeout", "60", text=True)
    assert "engine/rpm" in ask("browse", "--timeout", "60", text=True)


def test_watch_ends_after_as_many_changes_as_it_was_told(ask: Vars) -> None:
    found = ask("watch", "engine/rpm", "--period", "0.02", "--count", "3")
    assert [row["name"] for row in found] == ["engine/rpm"] * 3
    assert found[-1]["repeated"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("get",), "say which"),
        (("get", "nope", "--timeout", "60"), "nobody has a variable 'nope'"),
        (("set", "engine/rpm"), "and to what"),
        (("set", "engine/rpm", "fast", "--timeout", "60"), "variable 'engine/rpm' is a float, not str"),
        (("list", "nope/*", "--timeout", "60"), "no variable of 'plant' fits"),
        (("watch", "--count", "0"), "--count is at least 1"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], said: str, ask: Vars) -> None:
    assert said in ask(*words, fails=True)


def test_a_tag_without_variables(ask: Vars, session: Any) -> None:
    session.publisher("text", codec="json")
    assert "no variables" in ask(tag="text", fails=True)
    assert "there is no tag" in ask(tag="nobody/here", fails=True)
