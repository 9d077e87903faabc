"""Native methods on public objects, without a Python frame per call.

A public class defines each method with its types and its documentation. An instance hides it behind the native method
of its ring: an attribute of an instance is found before a function of its class.
"""

from __future__ import annotations

from collections.abc import Iterable


def lend(ring: object, face: object, names: Iterable[str]) -> None:
    """Hide the methods `names` of `face` behind those of `ring`."""
    for name in names:
        setattr(face, name, getattr(ring, name))
