"""Addresses as text, `host:port` or `[host]:port`: taken apart, put together, and sorted out. Pure."""

from __future__ import annotations

import ipaddress
import re

_BRACKETS = re.compile(r"\[([^\[\]\s]+)\](?::([0-9]{1,5}))?")
_PLAIN = re.compile(r"([^:\[\]\s]+):([0-9]{1,5})")


def split(address: str, default_port: int | None = None) -> tuple[str, int]:
    """Host and port. Raises ValueError, which says what was expected."""
    found = _BRACKETS.fullmatch(address) or _PLAIN.fullmatch(address)
    host, port = found.groups() if found else (address, None)
    if (":" in host and not is_ip(host)) or (not found and re.search(r"[\[\]\s]", host)):
        host = ""
    number = default_port if port is None else int(port)
    if not host or number is None or number > 65535:
        raise ValueError(f"{address!r} is not an address: expected HOST:PORT, or [HOST]:PORT for IPv6")
    return host, number


def is_address(address: str) -> bool:
    try:
        split(address)
    except ValueError:
        return False
    return True


def join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_ipv6(host: str) -> bool:
    return ":" in host


def is_wildcard(host: str) -> bool:
    """Stands for every address of the machine."""
    return is_ip(host) and ipaddress.ip_address(host).is_unspecified


def is_shareable(host: str) -> bool:
    """Whether others may understand it: a link-local address names an interface of this machine."""
    return not (is_ip(host) and ipaddress.ip_address(host).is_link_local)


def is_loopback(host: str) -> bool:
    return is_ip(host) and ipaddress.ip_address(host).is_loopback


def same_host(one: str, other: str) -> bool:
    """Whether both are the same address, or this machine by two of its names for itself."""
    if one == other or (is_loopback(one) and is_loopback(other)):
        return True
    return is_ip(one) and is_ip(other) and ipaddress.ip_address(one) == ipaddress.ip_address(other)


def is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
