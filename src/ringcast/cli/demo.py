"""`ringcast demo`: publishers and subscribers of every kind at work, live, and a summary. Ends by itself.

Everything happens on a private socket in a temporary directory, beside whatever else runs on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.output import Output, add_json, drawn
from ringcast.cli.showcase.cast import PUBLISHERS, STARTER, SUBSCRIBERS
from ringcast.cli.showcase.scene import (
    PUBLISHER_HEADS,
    PULL_HEADS,
    SUBSCRIBER_HEADS,
    Scene,
    progress_line,
    publisher_cells,
    subscriber_cells,
)
from ringcast.cli.units import positive

if TYPE_CHECKING:
    from ringcast.cli.showcase.director import Performance, Show

HELP = "See it work: publishers and subscribers of every kind as real processes, live for some seconds, then a summary."

_EPILOG = """\
A sensor at 1 kHz, a camera with NumPy frames, a thermometer in JSON; subscribers that are eager, slow (it loses, and is
told), reliable, wildcard, asyncio and callback; pulls from histories; a daemon that starts and ends by itself. It uses
a socket of its own and leaves nothing behind.

examples:
  ringcast demo
  ringcast demo --seconds 30
  ringcast demo --json
"""

_PROGRESS_EVERY_S = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--seconds", type=positive, default=8.0, metavar="N", help="how long to watch (default: 8)")
    add_json(parser, "the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    from ringcast.cli.showcase.director import perform

    output = Output(args.json)
    tell = (lambda _: None) if output.json else output.line
    with _terminable(), tempfile.TemporaryDirectory(prefix="ringcast-demo-") as directory, _shown(output) as show:
        done = perform(Path(directory), args.seconds, show, tell)
    if output.json:
        output.document(done)
    else:
        _summarise(done, output)
    return 0 if done.idle_exit_s is not None else 1


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: with everything cleared away."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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


def _summarise(done: Performance, output: Output) -> None:
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
