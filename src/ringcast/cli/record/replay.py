"""`ringcast replay`: publish what was recorded."""

from __future__ import annotations

import argparse
import time

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.ending import on_end
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.model.tag import check_name, check_pattern

HELP = "Publish a recording (a directory or an MCAP file), with the timing it had or another."

EPILOG = """\
Messages keep their bytes and their event times; numbers and send times are new. Each recorded publisher is replayed by
a publisher of its own. Tags are created with the codec and schema that were recorded.

examples:
  ringcast replay day1                                as it was
  ringcast replay day1 --speed 10                     ten times as fast; 'max' as fast as possible
  ringcast replay day1 --only 'cam/**' --prefix old/  some tags, under other names
  ringcast replay flight.mcap --rename cam/1=cam/9
"""

_SHOW_S = 0.5


def _speed(text: str) -> float:
    value = float("inf") if text == "max" else float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, or 'max'")
    return value


def _renaming(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW")
    return old, new


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="DIR|FILE", help="what 'ringcast record' wrote")
    parser.add_argument("--speed", type=_speed, default=1.0, metavar="X", help="1 (default) is as recorded; 'max'")
    parser.add_argument("--only", default="**", metavar="PATTERN", help="only the recorded tags that match")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="put before every tag's name")
    parser.add_argument(
        "--rename",
        type=_renaming,
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="replay tag OLD as NEW; repeatable",
    )
    parser.add_argument("--wait", type=int, default=0, metavar="N", help="wait for N subscribers of each tag first")
    add_access(parser)
    add_json(parser, "one JSON object at the end")


def run(args: argparse.Namespace) -> int:
    check_pattern(args.only)
    for _, new in args.rename:
        check_name(new)
    try:
        from ringcast.record.replay import Renaming, Replay, open_recording
    except ImportError as exc:
        raise Misuse(f"replaying needs {exc.name}: pip install 'ringcast[record]'") from exc
    output = Output(args.json)
    shown = time.monotonic()

    def progress(sent: int, recorded_ns: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _SHOW_S:
            shown = time.monotonic()
            at = time.strftime("%H:%M:%S", time.gmtime(recorded_ns / 1e9))
            output.progress(f"{sent} messages, at {at} UTC of the recording (Ctrl-C ends)")

    source = open_recording(args.recording, args.only)
    with connect(args, "replay") as session:
        replay = Replay(
            session, speed=args.speed, rename=Renaming(dict(args.rename), args.prefix), pattern=args.only,
            wait_for=args.wait, on_progress=progress,
        )  # fmt: skip
        on_end(replay.stop)
        sent = replay.run(source)
    if args.json:
        output.document({"messages": sent, "recording": args.recording})
    else:
        output.line(f"replayed {sent} message(s)")
    return 0
