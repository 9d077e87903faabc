"""What all errors have in common: the base of them, and of those that the other side or the network caused. Pure."""

from __future__ import annotations


class RingcastError(Exception):
    """Base of everything below."""


class BrokenError(RingcastError):
    """The other side, or the way to it, is gone."""
