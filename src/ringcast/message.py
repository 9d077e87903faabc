"""What a receiver gets. Native, because a Python object per message would cost more than the message.

Times are UTC in nanoseconds: `event_ns` is the application's (a camera's shutter; the time of sending when it gave
none), `sent_ns` was taken in `send`, `received_ns` in `recv`.
"""

from __future__ import annotations

from ringcast._core import Message, Reservation

__all__ = ["Message", "Reservation"]
