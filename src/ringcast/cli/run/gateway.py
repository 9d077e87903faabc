"""`ringcast gateway`: pages as clients, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import count, positive, size
from ringcast.cli.program import Misuse
from ringcast.errors import RingcastError
from ringcast.model.addresses import is_loopback

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from ringcast.daemon.access.tokens import Permits
    from ringcast.gateway.limits import Limits
    from ringcast.gateway.server import Gateway
    from ringcast.session import Session

HELP = "Serve web pages that publish, subscribe, pull, list and watch, with the rights of this program."

EPILOG = """\
A page loads the module ringcast.js from the gateway, and has the Python API in JavaScript:

  <script type="module">
    import { connect } from "/ringcast/ringcast.js";
    const session = await connect();
    const tag = session.tag("lab/temperature", { codec: "json" });
    for await (const msg of tag.subscribe({ rateHz: 5 })) console.log(msg.data, msg.lost);
  </script>

The gateway listens on this machine alone unless --listen says otherwise, and pages of other sites are refused unless
--origin names them. For other machines it needs --rules: pages show a token, and may do what the rules of that token
say. SIGHUP reads the rules again: pages lose at once what they may not have any more. --open serves whoever reaches it
instead, with all rights of this program. 'ringcast audit' shows what was refused. Browsers give microphone and camera
to pages from this machine, and to others by https only (--cert, --key).
A page that is too slow gets every second, fourth... message for as long as it is behind, and counts the others in
'lost'. A page whose network was away goes on where it was. docs/gateway.md has the protocol, and what each limit does.

examples:
  ringcast gateway --serve examples/gateway      the example page, on http://127.0.0.1:7480/
  ringcast gateway --new-token
  ringcast gateway --serve public --listen 0.0.0.0:8443 --rules pages.toml --cert cert.pem --key key.pem
  ringcast gateway --serve public --listen 10.0.0.2:8080 --open
  ringcast gateway --origin https://dash.example.org --max-pages 200
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default="127.0.0.1:7480",
        help="where browsers find it (default: 127.0.0.1:7480; port 0 takes a free one)",
    )  # fmt: skip
    parser.add_argument(
        "--serve", metavar="[PATH=]FOLDER", action="append", default=[],
        help="serve the files of a folder, at / or under a path such as /app; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--origin", metavar="URL", action="append", default=[],
        help="also serve pages of this origin, as https://example.org; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--rules", metavar="FILE", help="pages show a token, and may do what this file says (docs/gateway.md)"
    )
    parser.add_argument(
        "--open", action="store_true", help="serve other machines without tokens: whoever reaches it may do everything"
    )
    parser.add_argument(
        "--new-token", action="store_true", help="print a new token, and the fingerprint for --rules; exit"
    )
    parser.add_argument("--cert", metavar="FILE", help="serve https with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", help="the certificate's private key (PEM), if it is in another file")
    parser.add_argument("--max-pages", metavar="N", type=count, help="serve so many pages at once (default: 64)")
    parser.add_argument(
        "--max-message", metavar="SIZE", type=size, help="the longest message from a page, as 1M (default: 4M)"
    )
    parser.add_argument(
        "--max-rate", metavar="HZ", type=positive, help="messages a second that are read from a page (default: 2000)"
    )
    parser.add_argument(
        "--max-bandwidth", metavar="SIZE", type=size,
        help="bytes a second that are read from a page, as 1M (default: 32M)",
    )  # fmt: skip
    add_access(parser)
    add_json(parser, "one line: node and address")


def run(args: argparse.Namespace) -> int:
    if args.new_token:
        return _new_token(Output(args.json))
    try:
        from ringcast.gateway import server as _  # noqa: F401
    except ModuleNotFoundError as exc:
        if exc.name != "aiohttp":
            raise
        raise Misuse("the gateway needs aiohttp: pip install 'ringcast[gateway]'") from None
    with connect(args, "gateway") as session:
        return asyncio.run(serve(session, args))


async def serve(session: Session, args: argparse.Namespace) -> int:
    """Until a signal ends it. Raises Misuse, CannotListen."""
    from ringcast.daemon.access.tokens import Permit
    from ringcast.gateway.server import Gateway

    output = Output(args.json)
    host, port = address(args.listen)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    check_open(args, host)
    try:
        gateway = Gateway(
            session, host=host, port=port, origins=args.origin, folders=folders(args.serve), limits=limits(args),
            tls=certificate(args.cert, args.key), permits=permits(args.rules), anybody=Permit() if args.open else None,
        )  # fmt: skip
    except ValueError as exc:
        raise Misuse(str(exc)) from None
    async with gateway:
        with reloading(gateway, args.rules, output):
            return await _until(ended, gateway, session, output)


def check_open(args: argparse.Namespace, host: str) -> None:
    """Raises Misuse."""
    if args.open and args.rules is not None:
        raise Misuse("--open serves whoever comes, and --rules those with a token: leave one of them out")
    if not args.open and args.rules is None and not is_loopback(host) and host != "localhost":
        raise Misuse(
            f"whoever reaches {args.listen} could do what this program may: have pages show a token (--rules FILE, "
            "--new-token), or serve everybody with --open"
        )


@contextlib.contextmanager
def reloading(gateway: Gateway, path: str | None, output: Output) -> Iterator[None]:
    """SIGHUP reads the rules again meanwhile."""
    loop = asyncio.get_running_loop()
    under_way: set[asyncio.Task[None]] = set()

    def reload() -> None:
        try:
            wanted = permits(path)
        except RingcastError as exc:
            output.note(f"the rules were not read again, the old ones stay in force: {exc}")
            return
        if wanted is not None:
            task = loop.create_task(_take_over(gateway, wanted, output))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    if path is None:
        yield
        return
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        for task in under_way:
            task.cancel()


async def _take_over(gateway: Gateway, wanted: Permits, output: Output) -> None:
    await gateway.take_over(wanted)
    output.note("the rules were read again")


async def _until(ended: asyncio.Event, gateway: Gateway, session: Session, output: Output) -> int:
    if output.json:
        output.record({"node": session.node, "address": gateway.address})
    else:
        output.line(f"gateway of node {session.node}: {gateway.address}/  (Ctrl-C ends it)")
    await ended.wait()
    return 0


def permits(path: str | None) -> Permits | None:
    """Raises BadConfiguration."""
    from pathlib import Path

    from ringcast.daemon.access.tokens import read

    return read(Path(path).absolute()) if path is not None else None


def _new_token(output: Output) -> int:
    from ringcast.daemon.access.tokens import fingerprint, new_token

    token = new_token()
    if output.json:
        output.document({"token": token, "fingerprint": fingerprint(token)})
        return 0
    output.note("for whoever may use it:")
    output.line(token)
    output.note("for the file with rules, under [tokens]:")
    output.line(f'NAME = "{fingerprint(token)}"')
    return 0


def address(text: str) -> tuple[str, int]:
    """Raises Misuse."""
    from ringcast.model.addresses import split

    try:
        return split(text)
    except ValueError as exc:
        raise Misuse(f"--listen: {exc}") from None


def folders(given: list[str]) -> dict[str, str | Path]:
    """Raises Misuse."""
    found: dict[str, str | Path] = {}
    for text in given:
        path, equals, folder = text.partition("=")
        if not equals or not path.startswith("/"):
            path, folder = "/", text
        if path.startswith("/ringcast"):
            raise Misuse(f"--serve {text}: paths that begin with /ringcast are the gateway's own; choose another")
        found[path.rstrip("/") or "/"] = folder
    return found


def limits(args: argparse.Namespace) -> Limits:
    from ringcast.gateway.limits import Limits

    given = {
        "pages": args.max_pages, "message_bytes": args.max_message, "messages_per_s": args.max_rate,
        "bytes_per_s": args.max_bandwidth,
    }  # fmt: skip
    return Limits(**{name: value for name, value in given.items() if value is not None})


def certificate(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """Raises Misuse."""
    if cert is None:
        if key is not None:
            raise Misuse("--key belongs to a certificate: add --cert FILE")
        return None
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as exc:
        raise Misuse(f"the certificate {cert} cannot be used: {exc}") from None
    return context
