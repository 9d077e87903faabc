"""What a receiver gets. Native, because a Python object per message would cost more than the message.

`Message[T]` has data of type T: what the codec and the schema of its tag say, `object` where a program says neither.
Times are UTC in nanoseconds: `event_ns` is the application's (a camera's shutter; the time of sending when it gave
none), `sent_ns` was taken in `send`, `received_ns` in `recv`. Of a message from another node `kernel_ns` and
`arrived_ns` say when this node's kernel and its mirror had it. All are by the clock of the node that reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast._core import Message, Reservation

if TYPE_CHECKING:
    # Defaults of type variables are in `typing` from Python 3.13 on; only type checkers need them.
    from typing_extensions import TypeVar

    T = TypeVar("T", default=object)
    T_co = TypeVar("T_co", default=object, covariant=True)
    T_contra = TypeVar("T_contra", default=object, contravariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    T_contra = TypeVar("T_contra", contravariant=True)

__all__ = ["Message", "Reservation", "T", "T_co", "T_contra"]
