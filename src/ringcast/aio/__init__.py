"""The same objects for asyncio, with the same names: session, tag, publisher, subscriber, history, watch.

What may wait is a coroutine here. What only looks at shared memory is called in place; what waits for the daemon, for
another node or for a reliable reader runs on a thread of the session, so that the loop goes on.
"""

from ringcast.aio.history import AsyncHistory
from ringcast.aio.publisher import AsyncPublisher
from ringcast.aio.session import AsyncSession, Connecting, connect_async
from ringcast.aio.subscriber import AsyncSubscriber
from ringcast.aio.tag import AsyncTag
from ringcast.aio.watch import AsyncWatch

__all__ = [
    "AsyncHistory", "AsyncPublisher", "AsyncSession", "AsyncSubscriber", "AsyncTag", "AsyncWatch", "Connecting",
    "connect_async",
]  # fmt: skip
