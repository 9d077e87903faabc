"""Addresses as text, `host:port` or `[host]:port`: taken apart, put together, and sorted out. Opens no socket."""

from __future__ import annotations

import ipaddress


def split(address: str, default_port: int | None = None) -> tuple[str, int]:
    """Host and port. Raises ValueError, which says what was expected."""
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.removeprefix(":")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, ""
    number = int(port) if port.isascii() and port.isdigit() else default_port if not port else None
    if not host or number is None or not 0 <= number <= 65535:
        raise ValueError(f"{address!r} is not an address: expected HOST:PORT, or [HOST]:PORT for IPv6")
    return host, number


def join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_ipv6(host: str) -> bool:
    return ":" in host


def is_wildcard(host: str) -> bool:
    """Stands for every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_shareable(host: str) -> bool:
    """Whether others may understand it: a link-local address names an interface of this machine."""
    try:
        return not ipaddress.ip_address(host).is_link_local
    except ValueError:
        return True


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
