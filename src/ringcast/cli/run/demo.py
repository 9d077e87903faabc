"""`ringcast demo`: a search and rescue on a mesh of three nodes, fused in Spark, live; or, small, one node by itself.

Everything happens on private sockets in a temporary directory, beside whatever else runs on this machine. What stays is
the folder with the page.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ringcast.cli.parts.ending import terminable
from ringcast.cli.parts.output import Output, add_json, drawn
from ringcast.cli.parts.units import positive
from ringcast.cli.program import Misuse

if TYPE_CHECKING:
    from ringcast.demo.rescue.running import Outcome, Scene, Show

HELP = "See it work: a search and rescue on three nodes, fused in Spark, live for half a minute, then a page of it."

EPILOG = """\
Two UAVs and four street cameras, each a process of its own, publish on two nodes; a handheld subscribes to a UAV's
camera behind a proxy that makes the pictures smaller and fewer; Spark on the third node reads the tags live, finds
survivors and publishes them on sar/detections, to which we subscribe. Afterwards the recording is analysed, what was
found is compared with the truth, and a page with pictures is written. It needs the extra 'spark', and a Java.

With --small: one node, publishers and subscribers of every kind, no Spark.

Both use sockets of their own and leave only the folder with the page.

examples:
  ringcast demo
  ringcast demo --seconds 60 --out page
  ringcast demo --small
  ringcast demo --json
"""

SECONDS, SMALL_SECONDS = 25.0, 8.0
SUMMARY = "demo.json"
_PROGRESS_EVERY_S = 2.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help=f"how long to watch ({SECONDS:g}, small {SMALL_SECONDS:g})",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out", "demo"), metavar="DIR", help="folder for the page (default: out/demo)"
    )
    parser.add_argument("--small", action="store_true", help="one node and no Spark")
    add_json(parser, "the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with terminable():
        if args.small:
            from ringcast.demo.small.summary import play

            return play(args.seconds or SMALL_SECONDS, output)
        return _search(args.seconds or SECONDS, args.out, output)


def _search(seconds: float, out: Path, output: Output) -> int:
    from ringcast.demo.rescue import view

    _check_spark()
    _clear(out)
    begin = time.monotonic()
    tell = (lambda _: None) if output.json else output.line
    from ringcast.demo.rescue.running import run

    with _shown(output) as show:
        done = run(out, seconds, show, tell)
    (out / SUMMARY).write_bytes(msgspec.json.format(msgspec.json.encode(done)))
    if output.json:
        output.document(done)
        return _code(done)
    for heads, cells, title in view.sheets(done.scene, "\nafter it all"):
        output.table(heads, cells, title)
    output.line()
    for sentence in view.verdict(done):
        output.line(sentence)
    output.line(f"\n{time.monotonic() - begin:.0f} s in all. The page: {done.concluded.page}")
    output.line(f"The tables behind it: ringcast pipeline tables --lake {out / 'lake'}")
    return _code(done)


def _code(done: Outcome) -> int:
    return 0 if done.concluded.detections else 1


def _check_spark() -> None:
    """Before anything is started. Raises NoSpark, NoJava."""
    from ringcast.cli.analyse.pipeline import NoSpark

    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark("pyspark")
    from ringcast.spark.jvm.java import java_home

    java_home()


def _clear(out: Path) -> None:
    """Room for a new one where an earlier demo was, and nowhere else. Raises Misuse."""
    mine = [out / name for name in ("lake", "recording")]
    if any(path.exists() for path in mine) and not (out / SUMMARY).exists() and not (out / ".demo").exists():
        raise Misuse(f"{out} has a lake or a recording that is not an earlier demo's; choose another place with --out")
    for path in mine:
        shutil.rmtree(path, ignore_errors=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".demo").touch()
    except OSError as exc:
        raise Misuse(f"cannot write to {out}: {exc.strerror}; choose another place with --out") from exc


@contextlib.contextmanager
def _shown(output: Output) -> Iterator[Show]:
    """How looks are shown: tables that change on a terminal, lines elsewhere, nothing with --json."""
    from ringcast.demo.rescue import view

    if output.terminal:
        from rich.console import Group
        from rich.live import Live

        with Live(auto_refresh=False, transient=True) as live:

            def draw(scene: Scene) -> None:
                sheets = view.sheets(scene, f"{scene.elapsed_s:.0f} s")
                live.update(Group(*(drawn(*sheet) for sheet in sheets)), refresh=True)

            yield draw
        return
    shown = float("-inf")

    def write(scene: Scene) -> None:
        nonlocal shown
        if not output.json and scene.elapsed_s >= shown + _PROGRESS_EVERY_S:
            shown = scene.elapsed_s
            output.line(view.line(scene))

    yield write
