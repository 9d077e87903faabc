"""A host's name as an address, without keeping the daemon's loop waiting: transports connect at once, so what they are
given must need no look-up."""

from __future__ import annotations

import asyncio
import socket

from ringcast.model.addresses import is_ip

RESOLVE_S = 3.0


async def resolved(host: str, timeout_s: float = RESOLVE_S) -> str:
    """The first address of `host`; an address is its own. Raises OSError: no such name, or no answer in time."""
    if not host or is_ip(host):
        return host
    try:
        async with asyncio.timeout(timeout_s):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except TimeoutError as exc:
        raise TimeoutError(f"the name {host!r} was not resolved within {timeout_s:g} s") from exc
    return str(found[0][4][0])
