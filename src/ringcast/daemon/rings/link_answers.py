"""What those who push into rings answer on their fan-out sockets: links that they give back.

Invariant: a fan-out with links is listened to until its other end closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ringcast.daemon.rings.fanout import Answer, FanOut


class LinkAnswers:
    def __init__(self, on_answer: Callable[[Answer], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_answer = on_answer

    def listen(self, fanout: FanOut) -> None:
        if fanout.unlisten is None:
            self._loop.add_reader(fanout.fileno(), self._answered, fanout)
            # By number: the descriptor may be closed by then.
            fanout.unlisten = partial(self._unlisten, fanout.fileno())

    def _unlisten(self, fd: int) -> None:
        self._loop.remove_reader(fd)

    def _answered(self, fanout: FanOut) -> None:
        answers = fanout.take_answers()
        if not answers and fanout.unlisten is not None:  # its other end is closed
            fanout.unlisten()
        for answer in answers:
            self._on_answer(answer)
