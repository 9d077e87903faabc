"""Files that a daemon keeps for others and seldom needs itself: the memory of rings and of their bells.

A descriptor for each would be most of what a daemon has open, so they are kept without one where the kernel can
(decision 101), and opened when they are handed out. Where it cannot, the descriptor stays open.
"""

from __future__ import annotations

import weakref

from ringcast import _core
from ringcast.control.descriptor import Descriptor

_STORE = _core.FileStore()


class KeptFile:
    """The file of a descriptor, which may be closed afterwards."""

    __slots__ = ("_descriptor", "_opened", "_place")

    def __init__(self, descriptor: Descriptor) -> None:
        self._place = _STORE.keep(descriptor.fileno())
        self._descriptor = descriptor if self._place is None else None
        self._opened: weakref.ref[Descriptor] | None = None

    def open(self) -> Descriptor:
        """A descriptor of it, one for all who hold it at the same time; it is closed when nobody does any more. Raises
        ResourceLimit."""
        if self._descriptor is not None:
            return self._descriptor
        opened = self._opened() if self._opened is not None else None
        if opened is None:
            assert self._place is not None
            opened = Descriptor(_STORE.open(self._place))
            self._opened = weakref.ref(opened)
        return opened

    def __del__(self) -> None:
        if self._place is not None:
            _STORE.drop(self._place)


def without_descriptors() -> bool:
    """Whether this kernel lets a process keep files without a descriptor for each."""
    with open("/dev/null", "rb") as file:
        place = _core.FileStore().keep(file.fileno())
    return place is not None
