"""Who may come in: requests of our own pages, with a token where tokens are wanted.

Invariant: nobody gets a permit whom no rule gives one. A gateway that others can reach has rules, or somebody said that
it is open to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import hdrs, web

from ringcast.daemon.access.tokens import Permit, Permits
from ringcast.gateway.access import origins
from ringcast.gateway.access.refusals import Refusals
from ringcast.model.addresses import is_loopback

ENTER = "/ringcast/enter"
COOKIE = "ringcast_token"
COOKIE_S = 30 * 86_400

_FORM = """<!doctype html><meta charset="utf-8"><title>Ringcast</title>
<form method="post"><label>Token <input name="token" type="password" autofocus></label> <button>Enter</button></form>
"""


class Entrance:
    """`permits` has pages show a token; without it, `anybody` is what whoever reaches the gateway may do, which on
    loopback is everything that the gateway may. `refusals` hears of those who were turned away."""

    def __init__(
        self, host: str, allowed: Iterable[str], permits: Permits | None, anybody: Permit | None, refusals: Refusals,
        *, secure: bool,
    ) -> None:  # fmt: skip
        """Raises ValueError for an origin that cannot be, or an open gateway that nobody wanted."""
        if permits is None and anybody is None:
            if not is_loopback(host) and host != "localhost":
                raise ValueError(
                    f"whoever reaches {host} could do what this program may: have pages show a token (rules), or say "
                    "that the gateway is open to everybody"
                )
            anybody = Permit()
        self.permits = permits
        self._anybody = anybody
        self._allowed = frozenset(map(origins.normal, allowed))
        self._refusals = refusals
        self._secure = secure

    @property
    def routes(self) -> list[web.RouteDef]:
        return [web.get(ENTER, _form), web.post(ENTER, self._enter)]

    def allows_origin(self, origin: str | None) -> bool:
        """Whether pages of another site may read what this one answers."""
        return origin is not None and origin in self._allowed

    def turn_away(self, request: web.Request) -> web.Response | None:
        """The answer to a request that no page of ours makes; None for the others."""
        headers = request.headers
        why = origins.refusal(
            request.scheme, request.host, headers.get(hdrs.ORIGIN), headers.get("Sec-Fetch-Site"),
            headers.get("Sec-Fetch-Mode"), self._allowed,
        )  # fmt: skip
        if why is None:
            return None
        self._refusals.note(host_of(request), "enter", "", why)
        return web.Response(status=403, text=f"{why}\n")

    def permit(self, request: web.Request) -> Permit | None:
        """Of the token that a request shows: a program's in a header, a page's in its cookie. None: it is to go."""
        if self.permits is None:
            return self._anybody
        scheme, _, said = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        shown = said if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
        found = self.permits.of(shown)
        if found is None:
            self._refusals.note(host_of(request), "enter", "", "a wrong token" if shown else "no token")
        return found

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        """A person shows a token, and the browser keeps it: no script reads it, and no other site makes use of it."""
        said = str((await request.post()).get("token", ""))
        if self.permits is None or self.permits.of(said) is None:
            self._refusals.note(host_of(request), "enter", "", "a wrong token")
            return web.Response(status=401, text="there is no such token\n")
        response = web.Response(status=303, headers={hdrs.LOCATION: "/"})
        response.set_cookie(
            COOKIE, said, max_age=COOKIE_S, path="/", httponly=True, samesite="Strict", secure=self._secure
        )
        return response


def host_of(request: web.Request) -> str:
    """Where a request came from; behind a proxy, that is the proxy."""
    return request.remote or "somebody"


async def _form(request: web.Request) -> web.Response:
    return web.Response(text=_FORM, content_type="text/html")
