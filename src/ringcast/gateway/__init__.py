"""Browsers as clients: WebSockets on one side, tags on the other. `docs/gateway.md` is the protocol's page.

A page has the rights of the gateway's own session, no more and no fewer. `Gateway` serves pages and their sockets; an
application such as the conference starts one with folders and routes of its own. Needs aiohttp
(`pip install 'ringcast[gateway]'`); the modules that decide something are pure and need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast.gateway.limits import Limits
    from ringcast.gateway.server import Gateway

__all__ = ["Gateway", "Limits"]


def __getattr__(name: str) -> object:
    """Loaded when first named: aiohttp is an extra."""
    if name == "Gateway":
        from ringcast.gateway.server import Gateway

        return Gateway
    if name == "Limits":
        from ringcast.gateway.limits import Limits

        return Limits
    raise AttributeError(f"module 'ringcast.gateway' has no attribute {name!r}")
