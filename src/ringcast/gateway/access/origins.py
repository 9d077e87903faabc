"""Which requests come from a page of this gateway, and which from a page of somebody else. Pure.

A browser sends along whichever page asks. A page of another site must not use this gateway with its visitor's network
and rights, so its Origin is refused. And a name that was made to point here (DNS rebinding) must not make another
site's page look like ours, so the Host that a request names is checked as well: an address, `localhost`, or a name that
the operator listed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit


def normal(origin: str) -> str:
    """An origin as browsers write it: scheme, host and port, without the port where it is the scheme's own.

    Raises ValueError.
    """
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ValueError(f"an origin is as https://example.org or http://10.0.0.2:8080, not {origin!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def hostname(host: str) -> str:
    """The name or address in a Host header, without port and brackets; '' when it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def host_is_ours(host: str, allowed: Collection[str]) -> bool:
    """Whether a request may name this host: an address, localhost, or the host of an allowed origin."""
    name = hostname(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.split("%")[0])
    except ValueError:
        return bool(name) and any(urlsplit(origin).hostname == name for origin in allowed)
    return True


def refusal(
    scheme: str, host: str, origin: str | None, fetch_site: str | None, fetch_mode: str | None, allowed: Collection[str]
) -> str | None:
    """Why a request with these headers is refused; None when it is not. `allowed` are normal origins beside our own.

    Without an Origin it was no script of a page, or one that asked for its own site; browsers that say so
    (`Sec-Fetch-Site`) are believed, and programs that are no browsers may come in.
    """
    if not host_is_ours(host, allowed):
        return f"this gateway is not known as {hostname(host)!r}; start it with --origin http://{host}"
    if origin is not None:
        try:
            asked = normal(origin)
        except ValueError:
            return f"pages of the origin {origin[:100]!r} may not use this gateway"
        if asked == _own(scheme, host) or asked in allowed:
            return None
        return f"pages of {asked} may not use this gateway; start it with --origin {asked}"
    if fetch_site in ("cross-site", "same-site") and fetch_mode != "navigate":
        return "pages of another site may not use this gateway"
    return None


def _own(scheme: str, host: str) -> str | None:
    try:
        return normal(f"{'https' if scheme in ('https', 'wss') else 'http'}://{host}")
    except ValueError:
        return None
