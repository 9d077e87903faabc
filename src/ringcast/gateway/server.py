"""The gateway: an HTTP server with the module `ringcast.js`, the sockets of pages, and an application's own files.

    async with Gateway(session, folders={"/": "public"}) as gateway:
        print(gateway.address)

Everything under `/ringcast/` is the gateway's own. It listens on loopback unless told otherwise, and answers pages of
its own origin and of those that are listed, nobody else's.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import WSCloseCode, hdrs, web

from ringcast.aio.threads import Threads
from ringcast.daemon.access.tokens import NotPermitted, Permit, Permits
from ringcast.errors import BadMessage, BrokenError
from ringcast.gateway import answers, requests
from ringcast.gateway.access.entrance import ENTER, Entrance, host_of
from ringcast.gateway.access.refusals import Refusals
from ringcast.gateway.connection import Connection, Ended
from ringcast.gateway.limits import Limits
from ringcast.gateway.page import Page
from ringcast.session import Session

logger = logging.getLogger("ringcast.gateway")

STATIC = Path(__file__).parent / "static"
SOCKET, ALIVE = "/ringcast/socket", "/ringcast/alive"
MODULES = sorted(path.name for path in STATIC.iterdir())
DEFAULT_PORT = 7480
_CLOSE_S = 2.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CannotListen(BrokenError):
    """The address is taken, or not this machine's."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        super().__init__(f"the gateway cannot listen on {host}:{port}: {reason}; choose another with --listen")


class Gateway:
    """Serves pages with the rights of `session`, which stays the caller's to close.

    `folders` are served as files, by the path under which a browser finds them; the folder at "/" may have an
    `index.html`. `routes` are an application's own (aiohttp's). `origins` are those of pages that come from elsewhere
    and may use this gateway all the same. With `permits`, a page has to show a token, and may do what its rules say;
    without, `anybody` is what every page may do. A gateway for loopback needs neither: there every page may do what
    `session` may. Port 0 takes a free one; `address` says which. `tls` makes it https.
    """

    def __init__(
        self,
        session: Session,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        origins: Iterable[str] = (),
        folders: Mapping[str, str | Path] | None = None,
        routes: Iterable[web.AbstractRouteDef] = (),
        limits: Limits = Limits(),
        permits: Permits | None = None,
        anybody: Permit | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises ValueError for an origin or limit that cannot be, a folder that is not there, or a gateway that others
        can reach without `permits` or `anybody`."""
        self._session = session
        self._host, self._port = host, port
        self._limits = limits.check()
        self._tls = tls
        self._threads = Threads()
        self._refusals = Refusals(session, self._threads)
        self._entrance = Entrance(host, origins, permits, anybody, self._refusals, secure=tls is not None)
        self._pages: dict[str, Page] = {}
        self._connections: dict[str, Connection] = {}
        self._lingering: dict[str, asyncio.Task[None]] = {}
        self._too_many = 0
        self._sockets = 0
        self._stopping = False
        self._runner: web.AppRunner | None = None
        self.app = web.Application(middlewares=[self._guard])
        self.app.add_routes([web.get(SOCKET, self._serve), web.get(ALIVE, self._alive)])
        self.app.add_routes([web.get("/favicon.ico", _nothing)])
        self.app.add_routes(self._entrance.routes)
        self.app.add_routes([web.get(f"/ringcast/{name}", _static) for name in MODULES])
        self.app.add_routes(list(routes))
        self._add_folders(folders or {})

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Listen. Raises CannotListen."""
        runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=_CLOSE_S)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as exc:
            await runner.cleanup()
            reason = "another program listens there" if exc.errno == errno.EADDRINUSE else exc.strerror or str(exc)
            raise CannotListen(self._host, self._port, reason) from exc
        self._runner = runner

    async def stop(self) -> None:
        """Say goodbye to all pages and release what they held. A second call does nothing."""
        self._stopping = True
        runner, self._runner = self._runner, None
        await asyncio.gather(
            *(one.close(WSCloseCode.GOING_AWAY, "the gateway ends") for one in list(self._connections.values()))
        )
        for task in list(self._lingering.values()):
            task.cancel()
        await asyncio.gather(*self._lingering.values(), return_exceptions=True)
        await asyncio.gather(*(self._release(page) for page in list(self._pages.values())))
        if runner is not None:
            await runner.cleanup()
        await self._refusals.close()
        self._threads.end()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def address(self) -> str:
        """Where a browser finds it, as `http://127.0.0.1:7480`."""
        host, port = self._host, self._port
        if self._runner is not None and self._runner.addresses:
            host, port = self._runner.addresses[0][:2]
        shown = "127.0.0.1" if host == "0.0.0.0" else "::1" if host == "::" else host
        return f"{'https' if self._tls else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{port}"

    @property
    def pages(self) -> int:
        """Pages that hold something: those connected, and those whose connection broke a moment ago."""
        return len(self._pages)

    @property
    def refused(self) -> int:
        """Requests of other origins, without a token or without a right, and connections beyond the limit."""
        return self._refusals.count + self._too_many

    # ---------------------------------------------------------------- requests

    def _add_folders(self, folders: Mapping[str, str | Path]) -> None:
        # Longer paths first, or the one at "/" would answer for all.
        for prefix, folder in sorted(folders.items(), key=lambda item: -len(item[0])):
            path = Path(folder).resolve()
            if not path.is_dir():
                raise ValueError(f"there is no folder {folder}")
            if (path / "index.html").is_file():
                index = path / "index.html"
                self.app.add_routes([web.get(prefix, _file(index))])
            self.app.add_routes([web.static(prefix, path)])

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refused := self._entrance.turn_away(request)) is not None:
            return refused
        origin = request.headers.get(hdrs.ORIGIN)
        response = await handler(request)
        if not response.prepared:
            response.headers.setdefault("X-Content-Type-Options", "nosniff")
            response.headers.setdefault("Cache-Control", "no-cache")
            if origin is not None and self._entrance.allows_origin(origin):
                response.headers["Access-Control-Allow-Origin"] = origin
                response.headers["Vary"] = "Origin"
            else:
                response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response

    async def _alive(self, request: web.Request) -> web.Response:
        """For pages that want to know whether the network is back; browsers slow down sockets that fail."""
        return web.Response(text="yes\n")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
            return web.Response(status=426, text="this address is for WebSockets: see ringcast.js\n")
        permit = self._entrance.permit(request)
        if permit is None:
            return web.Response(status=401, text=f"this gateway wants a token: enter it at {ENTER}\n")
        # A page that lost its network comes back while its old connection still looks alive.
        if self._sockets >= 2 * self._limits.pages:
            self._too_many += 1
            return web.Response(status=503, text=f"this gateway serves at most {self._limits.pages} pages\n")
        socket = web.WebSocketResponse(
            max_msg_size=self._limits.message_bytes, compress=False, autoping=True, timeout=_CLOSE_S
        )
        await socket.prepare(request)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        connection = Connection(socket, transport, self._limits)
        page: Page | None = None
        self._sockets += 1
        try:
            page = self._attach(await connection.hello(), connection, permit, host_of(request))
            await connection.run(page)
        except Ended as exc:
            await connection.close(exc.code, str(exc))
            connection.said_goodbye = exc.code == WSCloseCode.POLICY_VIOLATION
        finally:
            self._sockets -= 1
            if page is not None:
                self._detach(page, connection)
        return socket

    # ---------------------------------------------------------------- rules

    async def take_over(self, permits: Permits) -> None:
        """Other rules are in force from now on: pages lose what they may not have any more, and those whose token is
        gone lose everything. Raises ValueError when this gateway wants no tokens."""
        if self._entrance.permits is None:
            raise ValueError("this gateway was started without rules; start it again with them")
        self._entrance.permits = permits
        for page in list(self._pages.values()):
            permit = page.permit.under(permits)
            if permit is not None:
                await page.enforce(permit)
                continue
            self._refusals.note(str(page.permit), "enter", "", "the token is not good any more")
            if (connection := self._connections.pop(page.token, None)) is not None:
                await connection.close(WSCloseCode.POLICY_VIOLATION, "your token is not good any more")
            if (waiting := self._lingering.pop(page.token, None)) is not None:
                waiting.cancel()
            await self._release(page)

    # ---------------------------------------------------------------- pages and their connections

    def _attach(self, hello: requests.Hello, connection: Connection, permit: Permit, host: str) -> Page:
        """A page that was here before, with the same token, goes on with all that it held. Raises Ended."""
        if self._entrance.permits is not None:  # the rules may have changed since it showed its token
            now = permit.under(self._entrance.permits)
            if now is None:
                raise Ended(WSCloseCode.POLICY_VIOLATION, "your token is not good any more")
            permit = now
        page = self._resume(hello, permit)
        resumed = page is not None
        if page is None:
            if len(self._pages) >= self._limits.pages:
                self._too_many += 1
                raise Ended(WSCloseCode.TRY_AGAIN_LATER, f"this gateway serves at most {self._limits.pages} pages")
            page = Page(self._session, self._threads, self._limits, permit, partial(self._not_permitted, host))
            self._pages[page.token] = page
        self._connections[page.token] = connection
        limits = {name: value for name, value in msgspec.to_builtins(self._limits).items() if name != "pages"}
        page.outbox.say(answers.welcome(hello.id, self._session.node, page.token, resumed, self._limits.beat_s, limits))
        return page

    def _not_permitted(self, host: str, error: NotPermitted) -> None:
        self._refusals.note(f"{error.who} from {host}", error.action, error.what, "no rule allows it")

    def _resume(self, hello: requests.Hello, permit: Permit) -> Page | None:
        """The page as it was, or None: it was never here, has been released, or counts otherwise than we do."""
        page = self._pages.get(hello.token)
        if page is None or page.permit.token != permit.token:
            return None
        if (waiting := self._lingering.pop(page.token, None)) is not None:
            waiting.cancel()
        if (before := self._connections.pop(page.token, None)) is not None:
            before.cut()
        try:
            page.resume(hello.received)
        except BadMessage as exc:
            logger.warning("a page begins anew: %s", exc.reason)
            del self._pages[page.token]
            self._lingering[page.token] = asyncio.create_task(self._linger(page, 0.0))
            return None
        return page

    def _detach(self, page: Page, connection: Connection) -> None:
        if self._connections.get(page.token) is not connection:
            return  # a newer connection has taken the page over
        del self._connections[page.token]
        if self._stopping:
            return  # `stop` releases all
        patience_s = 0.0 if connection.said_goodbye else self._limits.linger_s
        self._lingering[page.token] = asyncio.create_task(self._linger(page, patience_s))

    async def _linger(self, page: Page, patience_s: float) -> None:
        await asyncio.sleep(patience_s)
        self._lingering.pop(page.token, None)
        await self._release(page)

    async def _release(self, page: Page) -> None:
        self._pages.pop(page.token, None)
        await page.release()


async def _nothing(request: web.Request) -> web.Response:
    """Browsers ask for an icon of every site."""
    return web.Response(status=204)


async def _static(request: web.Request) -> web.FileResponse:
    name = request.path.rpartition("/")[2]
    kind = "text/javascript" if name.endswith(".js") else "text/plain"
    return web.FileResponse(STATIC / name, headers={"Content-Type": f"{kind}; charset=utf-8"})


def _file(path: Path) -> Callable[[web.Request], Awaitable[web.FileResponse]]:
    async def serve(request: web.Request) -> web.FileResponse:
        return web.FileResponse(path)

    return serve
