"""A user's mistakes on the command line: one sentence, the right exit code, never a traceback, nothing left behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_ringcast

Ringcast = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ringcast_at(tmp_path: Path) -> Ringcast:
    """`ringcast` on a node where no daemon runs."""

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return run_ringcast(*arguments, given=given, RINGCAST_SOCKET=str(tmp_path / "d.sock"))

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ("sub", "lab//temp"),
        ("pub", "lab/*", "1"),
        ("pull", "lab/**"),
        ("delete", "lab/**"),
        ("hz", "/lab"),
        ("bw", "lab/t*mp"),
        ("delay", ""),
        ("tags", "lab temp"),
    ],
)
def test_a_bad_name_is_refused_before_a_daemon_is_started(
    ringcast_at: Ringcast, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = ringcast_at(*arguments)
    assert done.returncode == 1
    assert "is not a tag name" in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pub", "lab/temp", "1", "--rate", "fast"), "not a number above 0"),
        (("pub", "lab/temp", "1", "--count", "0"), "not a whole number from 1"),
        (("pub", "lab/temp", "1", "--capacity", "big"), "not a size"),
        (("pub", "lab/temp"), "nothing to send"),
        (("pub", "lab/temp", "1", "--stdin"), "not both"),
        (("pub", "lab/temp", "1", "--timeout", "1"), "--wait"),
        (("pub",), "TAG"),
        (("sub", "lab/temp", "--start", "yesterday"), "not new, latest, earliest or a sequence number"),
        (("sub", "lab/temp", "--timeout", "-1"), "not a number above 0"),
        (("sub", "lab/temp", "--raw", "--json"), "choose one"),
        (("pull", "lab/temp", "--range", "9:3"), "not a range"),
        (("pull", "lab/temp", "--seq", "1", "--back", "1"), "not allowed with"),
        (("pull", "lab/temp", "--back", "-1"), "from 0 on"),
        (("pull", "lab/temp", "--before", "noon"), "'noon' is not a time"),
        (("pull", "lab/temp", "--since", "soon"), "'soon' is not a time"),
        (("pull", "lab/temp", "--between", "1s", "2s"), "ends before it begins"),
        (("pull", "lab/temp", "--between", "1s"), "expected 2 arguments"),
        (("pull", "lab/temp", "--before", "1s", "--seq", "1"), "not allowed with"),
        (("hz", "lab/temp", "--window", "nan"), "not a number above 0"),
        (("delay", "lab/temp", "--count", "many"), "not a whole number"),
        (("tags", "--watch", "0"), "not a number above 0"),
        (("demo", "--seconds", "0"), "not a number above 0"),
        (("sub", "lab/temp", "--no-such-option"), "unrecognized arguments"),
        (("subscribe", "lab/temp"), "there is no verb"),
    ],
)
def test_a_wrong_use_is_exit_code_two(
    ringcast_at: Ringcast, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = ringcast_at(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("tags",), ("pub", "lab/temp", "1"), ("sub", "lab/temp"), ("pull", "lab/temp"), ("hz", "x"), ("bw", "x"),
        ("delay", "x"), ("delete", "x"),
    ],
)  # fmt: skip
def test_no_daemon_and_none_to_be_started(ringcast_at: Ringcast, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = ringcast_at(*arguments, "--no-start")
    assert done.returncode == 1
    assert done.stderr.startswith(f"ringcast: no daemon answers at {tmp_path / 'd.sock'}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["pull", "hz", "bw", "delay", "tags", "delete"])
def test_a_tag_that_nobody_created(daemon: Any, ringcast_at: Ringcast, verb: str) -> None:
    done = ringcast_at(verb, "x", "--socket", daemon.socket_path)
    assert done.returncode == 1
    assert done.stderr.startswith("ringcast: there is no tag 'x'")


def test_a_tag_that_never_comes(daemon: Any, ringcast_at: Ringcast) -> None:
    done = ringcast_at("sub", "x", "--timeout", "0.1", "--socket", daemon.socket_path)
    assert done.returncode == 1
    assert "there is no tag 'x'; create it" in done.stderr


def test_a_subscriber_that_never_comes(daemon: Any, ringcast_at: Ringcast) -> None:
    done = ringcast_at(
        "pub", "x", "1", "--wait", "1", "--timeout", "0.1", "--socket", daemon.socket_path
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "ringcast: 0 of 1 subscribers on 'x' after 0.1 s\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pub", "x", "not json", "--codec", "json"), 2, "is not JSON"),
        (("pub", "x", "1", "--codec", "morse"), 1, "no codec of that name"),
        (("pub", "x", "1", "--depth", "99"), 1, "exists with depth"),
        (("pub", "small", "too long for it" * 1000, "--capacity", "4K"), 1, "does not fit"),
        (("pull", "x"), 1, "nobody has published"),
    ],
)
def test_what_does_not_fit_a_tag(
    session: Any, daemon: Any, ringcast_at: Ringcast, arguments: tuple[str, ...], code: int, said: str
) -> None:
    if "--codec" not in arguments:
        session.tag("x", depth=8)
    done = ringcast_at(*arguments, "--socket", daemon.socket_path)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
