"""`ringcast conference`: talk, see, draw, write and play together in browsers; or take part without one.

Starts the gateway with the conference's page and prints the address to open. Several machines join the same conference
through the mesh, each with a gateway of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

import msgspec

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.ending import terminable
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import not_negative, positive
from ringcast.cli.program import Misuse
from ringcast.cli.run.gateway import address, certificate

if TYPE_CHECKING:
    from ringcast.gateway import Gateway
    from ringcast.session import Session

HELP = "Talk, see, draw, write and play together in browsers: starts the gateway and prints the address to open."

EPILOG = """\
Everybody who opens the address and names the same conference takes part; so does everybody at the gateways of other
nodes of the mesh. With --headless this process takes part itself, with sound from a file and a test picture, and says
at the end what it received: for tests, load and demonstrations.

Browsers give a microphone and a camera to pages of this machine (http://127.0.0.1) or of a secure address (https)
alone: --cert and --key serve one.

examples:
  ringcast conference                                       open the address that it prints
  ringcast conference --listen 0.0.0.0:8443 --cert c.pem --key k.pem      for other machines too
  ringcast conference --headless --audio tone:440 --video test --seconds 30
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--conference", default="main", metavar="NAME", help="which conference (default: main)")
    parser.add_argument(
        "--format", choices=("telephone", "wide"), default="telephone",
        help="sound: 8 kHz of 8 bits, as in the paper, or 16 kHz of 16 bits (default: telephone)",
    )  # fmt: skip
    parser.add_argument(
        "--mixing", choices=("speakers", "publishers"), default="speakers",
        help="keep the mix in range by the number of speakers or of publishers (default: speakers)",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", type=not_negative, default=1.0, metavar="T", help="louder is talk, the rest silence (default: 1)"
    )
    page = parser.add_argument_group("in browsers")
    page.add_argument(
        "--listen", default="127.0.0.1:8470", metavar="HOST:PORT", help="where (default: 127.0.0.1:8470; port 0: any)"
    )
    page.add_argument("--cert", metavar="FILE", help="certificate, for https")
    page.add_argument("--key", metavar="FILE", help="its key")
    page.add_argument("--origin", action="append", default=[], metavar="URL", help="serve pages of this origin too")
    alone = parser.add_argument_group("without a browser")
    alone.add_argument("--headless", action="store_true", help="take part without a browser")
    alone.add_argument("--name", default="", metavar="NAME", help="under this name (default: headless)")
    alone.add_argument(
        "--audio", default="silence", metavar="FILE", help="a WAV file, tone:HZ or silence (default: silence)"
    )
    alone.add_argument("--video", choices=("none", "test"), default="none", help="a test picture (default: none)")
    alone.add_argument("--seconds", type=positive, metavar="N", help="end after N seconds (headless: 30)")
    alone.add_argument(
        "--begin",
        default="0",
        metavar="T",
        help="speak from T on: seconds, UTC; - reads T from standard input when ready",
    )
    alone.add_argument(
        "--linger", type=not_negative, default=0.25, metavar="S",
        help="receive for S seconds more at the end, or until all others have gone (default: 0.25)",
    )  # fmt: skip
    alone.add_argument("--suppress-silence", action="store_true", help="do not send silent blocks at all")
    alone.add_argument("--delays", action="store_true", help="with --json: the delay of every block received, too")
    alone.add_argument("--save", default="", metavar="FILE", help="write what was heard to this WAV file")
    add_access(parser)
    add_json(parser, "the address, or what a headless participant received, as JSON")


def run(args: argparse.Namespace) -> int:
    with terminable():
        return _take_part(args) if args.headless else _serve(args)


def _take_part(args: argparse.Namespace) -> int:
    """Raises NoSound and as `connect` does."""
    from ringcast.conference.headless import Participant, Plan

    output = Output(args.json)
    plan = Plan(
        conference=args.conference, name=args.name or "headless", audio=args.audio, video=args.video,
        seconds=args.seconds or 30.0, form=_format(args), scheme=args.mixing,
        threshold=args.threshold, suppress=args.suppress_silence, save=args.save, linger_s=args.linger,
        delays=args.delays,
    )  # fmt: skip
    with connect(args, "conference") as session:
        account = Participant(session, plan).run(lambda: _begin(args))
    if output.json:
        sys.stdout.write(msgspec.json.encode(account).decode() + "\n")
        return 0
    heard = sum(account.received.values())
    output.line(
        f"{account.name} on {account.node}: sent {account.sent} blocks ({account.silent} silent, "
        f"{account.suppressed} of them not sent), received {heard} of {len(account.received)} speakers"
    )
    output.line(f"lost {account.lost}, late {account.late}, delay {account.delay_ms.get('p95', 0):g} ms (95 %)")
    output.line(f"frames: sent {account.frames_sent}, received {account.frames_received}, lost {account.frames_lost}")
    return 0


def _begin(args: argparse.Namespace) -> float:
    """When to speak, asked once everything is open. Raises Misuse."""
    if args.json:
        sys.stdout.write('{"ready": true}\n')
        sys.stdout.flush()
    text = sys.stdin.readline() if args.begin == "-" else args.begin
    try:
        return float(text)
    except ValueError:
        raise Misuse(f"--begin: {text.strip()!r} is no time in seconds") from None


def _format(args: argparse.Namespace) -> int:
    return {"telephone": 1, "wide": 2}[args.format]


def _serve(args: argparse.Namespace) -> int:
    """Raises Misuse, CannotListen and as `connect` does."""
    try:
        from ringcast.conference import serving
    except ModuleNotFoundError as exc:
        if exc.name != "aiohttp":
            raise
        raise Misuse("the conference's page needs aiohttp: pip install 'ringcast[gateway]'") from None
    host, port = address(args.listen)
    described = serving.describe(args.conference, form=_format(args), scheme=args.mixing, threshold=args.threshold)
    with connect(args, "conference") as session:
        try:
            gateway = serving.gateway(
                session, described, host=host, port=port, origins=args.origin, tls=certificate(args.cert, args.key)
            )
        except ValueError as exc:
            raise Misuse(str(exc)) from None
        return asyncio.run(_until_ended(gateway, session, args))


async def _until_ended(gateway: Gateway, session: Session, args: argparse.Namespace) -> int:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with gateway:
        if args.json:
            Output(True).record({"address": f"{gateway.address}/", "node": session.node, "conference": args.conference})
        else:
            print(
                f"conference {args.conference!r} on node {session.node}: {gateway.address}/  (Ctrl-C ends it)",
                flush=True,
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), args.seconds)
    return 0
