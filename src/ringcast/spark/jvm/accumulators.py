"""Spark's server of accumulators, which prints a traceback when its Java ends first. Nothing is wrong then."""

from __future__ import annotations

import socketserver
import sys
from typing import Any


def end_without_a_word() -> None:
    """From now on, in this process. Any other mistake is printed as before."""
    from pyspark import accumulators

    for kind in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        setattr(kind, "handle_error", _handled)  # noqa: B010


def _handled(server: socketserver.BaseServer, request: Any, address: Any) -> None:
    if not isinstance(sys.exception(), EOFError | ConnectionError):
        socketserver.BaseServer.handle_error(server, request, address)
