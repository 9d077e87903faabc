"""`ringcast record`: write what is sent on tags to disk."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.ending import on_end
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import count, positive, show_bytes
from ringcast.cli.program import Misuse
from ringcast.model.tag import check_pattern

if TYPE_CHECKING:
    from ringcast.record.recorder import Progress, Recorder

HELP = "Record tags, as they are received, to Parquet files that Spark, DuckDB and pandas read, or to an MCAP file."

EPILOG = """\
If DIR holds a recording already, it is continued without repeats, and without gaps as far as rings still hold what was
sent since. Ctrl-C ends the recording; everything received so far is committed. Messages that were overwritten before
this program read them are counted, in the column "lost" and at the end.

examples:
  ringcast record 'lab/**' --out day1            until Ctrl-C
  ringcast record cam/1/ir --out d --start earliest --for 60
  ringcast record 'cam/**' --mcap flight.mcap    for Foxglove
  ringcast replay day1 --speed 2
"""

_SHOW_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patterns", metavar="TAG", nargs="+", help="a tag, or 'lab/*/temp', 'lab/**'")
    parser.add_argument("--out", metavar="DIR", help="directory for the Parquet recording")
    parser.add_argument("--mcap", metavar="FILE", help="write an MCAP file, instead of DIR or besides")
    parser.add_argument("--start", choices=("new", "earliest"), default="new", help="where a new recording begins")
    parser.add_argument("--every", type=count, default=1, metavar="N", help="only numbers that are multiples of N")
    parser.add_argument(
        "--reliable", action="store_true", help="publishers wait for this program, up to the tag's max_wait_s"
    )
    parser.add_argument("--for", dest="seconds", type=positive, metavar="S", help="end after S seconds")
    parser.add_argument("--count", type=count, metavar="N", help="end after about N messages")
    parser.add_argument(
        "--disk", metavar="PRIORITY", help="of what is written: best-effort:0 (first) to 7, realtime:0 to 7, idle"
    )
    parser.add_argument("--commit", type=positive, default=5.0, metavar="S", help="seconds between commits (5)")
    add_access(parser)
    add_json(parser, "one JSON object at the end")


def run(args: argparse.Namespace) -> int:
    if args.out is None and args.mcap is None:
        raise Misuse("give --out DIR, --mcap FILE, or both")
    for pattern in args.patterns:
        check_pattern(pattern)
    try:
        from ringcast.record import disk
        from ringcast.record.mcap_file import McapSink
        from ringcast.record.recorder import Recorder
        from ringcast.record.writer import RecordingWriter
    except ImportError as exc:
        raise Misuse(f"recording needs {exc.name}: pip install 'ringcast[record]'") from exc
    if args.disk is not None:
        try:
            disk.take(disk.read(args.disk))
        except ValueError as exc:
            raise Misuse(f"--disk: {exc}") from exc
    output = Output(args.json)
    with ExitStack() as stack:
        writer = stack.enter_context(RecordingWriter(args.out)) if args.out is not None else None
        mcap = stack.enter_context(McapSink(args.mcap)) if args.mcap is not None else None
        session = stack.enter_context(connect(args, "record"))
        before = writer.committed if writer is not None else 0
        recorder = Recorder(
            session, args.patterns, writer, start=args.start, every=args.every, reliable=args.reliable,
            commit_every_s=args.commit, sinks=[mcap] if mcap is not None else [],
        )  # fmt: skip
        recorder.on_progress = _Display(output, recorder, args)
        on_end(recorder.stop)
        if before:
            output.note(f"continuing {args.out}: {before} message(s) so far")
        try:
            recorder.run()
        finally:
            _report(args, output, recorder, before)
    return 0


class _Display:
    """Progress, and the ends that --for and --count set."""

    def __init__(self, output: Output, recorder: Recorder, args: argparse.Namespace) -> None:
        self._output = output
        self._recorder = recorder
        self._args = args
        self._shown = 0.0

    def __call__(self, progress: Progress) -> None:
        if (self._args.seconds is not None and progress.elapsed_s >= self._args.seconds) or (
            self._args.count is not None and progress.rows >= self._args.count
        ):
            self._recorder.stop()
        now = time.monotonic()
        if now - self._shown >= _SHOW_S:
            self._shown = now
            lost = f", lost {progress.lost}" if progress.lost else ""
            self._output.progress(
                f"{progress.rows} messages of {progress.streams} publisher(s), {show_bytes(progress.bytes)}{lost}, "
                f"{progress.elapsed_s:.0f} s (Ctrl-C ends)"
            )


def _report(args: argparse.Namespace, output: Output, recorder: Recorder, before: int) -> None:
    committed = recorder.writer.committed - before if recorder.writer is not None else recorder.rows
    if args.json:
        output.document(
            {"messages": committed, "lost": recorder.lost, "bytes": recorder.bytes, "out": args.out, "mcap": args.mcap}
        )
    else:
        where = " and ".join(place for place in (args.out, args.mcap) if place)
        lost = f"; {recorder.lost} were overwritten before they could be read" if recorder.lost else ""
        output.line(f"recorded {committed} message(s), {show_bytes(recorder.bytes)}, to {where}{lost}")
    sys.stdout.flush()
