"""The small demo as it is shown: live while it plays, tables and sentences at the end."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.parts.output import Output, drawn
from ringcast.demo.small.roles import PUBLISHERS, STARTER, SUBSCRIBERS
from ringcast.demo.small.running import run
from ringcast.demo.small.scene import (
    PUBLISHER_HEADS,
    PULL_HEADS,
    SUBSCRIBER_HEADS,
    Scene,
    progress_line,
    publisher_cells,
    subscriber_cells,
)

if TYPE_CHECKING:
    from ringcast.demo.small.running import Outcome, Show

_PROGRESS_EVERY_S = 1.0


def play(seconds: float, output: Output) -> int:
    """Returns the exit code. Raises as `run` does."""
    tell = (lambda _: None) if output.json else output.line
    with tempfile.TemporaryDirectory(prefix="ringcast-demo-") as directory, _shown(output) as show:
        done = run(Path(directory), seconds, show, tell)
    if output.json:
        output.document(done)
    else:
        _summarise(done, output)
    return 0 if done.idle_exit_s is not None else 1


@contextlib.contextmanager
def _shown(output: Output) -> Iterator[Show]:
    """How scenes are shown: a table that changes on a terminal, a line a second elsewhere, nothing with --json."""
    if output.terminal:
        from rich.console import Group
        from rich.live import Live

        with Live(auto_refresh=False, transient=True) as live:

            def draw(scene: Scene, seconds: float) -> None:
                live.update(Group(*(drawn(*table) for table in _tables(scene, f"{seconds:.0f} s"))), refresh=True)

            yield draw
        return
    shown = 0.0

    def write(scene: Scene, seconds: float) -> None:
        nonlocal shown
        if not output.json and seconds >= shown:
            shown = seconds + _PROGRESS_EVERY_S
            output.line(progress_line(scene, seconds))

    yield write


def _tables(scene: Scene, title: str) -> Iterator[tuple[tuple[str, ...], list[list[str]], str]]:
    yield PUBLISHER_HEADS, publisher_cells(scene, (*PUBLISHERS, STARTER)), title
    yield SUBSCRIBER_HEADS, subscriber_cells(scene, SUBSCRIBERS), ""


def _summarise(done: Outcome, output: Output) -> None:
    for heads, cells, title in _tables(done.scene, "\nafter it all"):
        output.table(heads, cells, title)
    output.table(
        PULL_HEADS, [[pulled.what, pulled.call, pulled.found] for pulled in done.pulls], "\npulled from histories"
    )
    slow = done.scene.subscribers["slow"]
    output.line(
        f"\nThe slow subscriber received {slow.received}, lost {slow.lost}, and was told so with each message; "
        "nobody else waited for it."
    )
    if done.idle_exit_s is None:
        output.line(f"The daemon, process {done.daemon_pid}, should have ended by now and has not.")
    else:
        output.line(
            f"The daemon, process {done.daemon_pid}, ended {done.idle_exit_s:.1f} s after its last client left."
        )
